#include "tests/chaos/history.h"

#include <fmt/format.h>
#include <time.h>

#include <charconv>
#include <sstream>

namespace baton::chaos {
namespace {

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

std::string to_line(const Operation& o) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", static_cast<int>(o.kind),
                     static_cast<int>(o.outcome), or_dash(o.who), or_dash(o.key), or_dash(o.word), o.task,
                     o.lease, o.attempt, static_cast<int>(o.existed), o.lsn, o.ttl_us, o.invoked_us,
                     o.returned_us);
}

std::optional<Operation> operation_of(std::string_view line) {
  std::istringstream words{std::string(line)};
  Operation o;
  int kind = 0, outcome = 0;
  words >> kind >> outcome >> o.who >> o.key >> o.word >> o.task >> o.lease >> o.attempt >> o.existed >>
      o.lsn >> o.ttl_us >> o.invoked_us >> o.returned_us;
  if (words.fail()) return {};  // the process was killed while it wrote
  o.kind = static_cast<Kind>(kind);
  o.outcome = static_cast<Outcome>(outcome);
  for (std::string* text : {&o.who, &o.key, &o.word}) {
    if (*text == "-") text->clear();
  }
  return o;
}

Lsn lsn_of(std::string_view id) {
  Lsn lsn = 0;
  const std::size_t dash = id.find('-');
  if (dash != std::string_view::npos) std::from_chars(id.data() + dash + 1, id.data() + id.size(), lsn, 16);
  return lsn;
}

std::int64_t now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace baton::chaos
