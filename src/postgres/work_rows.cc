#include "postgres/work_rows.h"

#include "base/check.h"

namespace baton::postgres {

using namespace stream;

namespace {

Verdict verdict_of(std::string_view word) {
  if (word == "ok") return Verdict::ok;
  if (word == "lost_lease") return Verdict::lost_lease;
  if (word == "duplicate") return Verdict::duplicate;
  BATON_CHECK(word == "unknown");
  return Verdict::unknown;
}

}  // namespace

Standing standing_of(const Rows& rows) { return {.rank = rows.int4(0, 0), .active = rows.int4(0, 1)}; }

std::vector<Verdict> verdicts_of(const Rows& rows, std::size_t count) {
  std::vector<Verdict> verdicts(count, Verdict::ok);
  for (int row = 0; row < rows.size(); ++row)
    verdicts.at(static_cast<std::size_t>(rows.int4(row, 0)) - 1) = verdict_of(rows.text(row, 1));
  return verdicts;
}

std::vector<Work> work_of(const Rows& rows) {
  std::vector<Work> all;
  all.reserve(static_cast<std::size_t>(rows.size()));
  for (int row = 0; row < rows.size(); ++row) {
    Work& work = all.emplace_back();
    work.lane = static_cast<Lane>(rows.int2(row, 0));
    work.message.value = rows.uuid(row, 1);
    work.epoch.value = rows.int8(row, 2);
    if (!rows.is_null(row, 3)) {
      work.stream = StreamId{rows.uuid(row, 3)};
      work.partition = rows.int4(row, 4);
      work.sequence = rows.int8(row, 5);
    }
    work.target = rows.text(row, 6);
    work.type = rows.text(row, 7);
    work.envelope_type = rows.text(row, 8);
    work.data = rows.text(row, 9);
    work.metadata = rows.text(row, 10);
    work.scope = rows.text(row, 11);
    work.status = static_cast<MessageStatus>(rows.int4(row, 12));
    work.flags = static_cast<WorkFlags>(rows.int4(row, 13));
    work.deliveries = rows.int4(row, 14);
    work.failures = rows.int4(row, 15);
    work.reason = static_cast<FailureReason>(rows.int4(row, 16));
    work.error = rows.text(row, 17);
  }
  return all;
}

}  // namespace baton::postgres
