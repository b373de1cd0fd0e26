#include "core/ids.h"

#include <charconv>

namespace baton::core {
namespace {

// Returns where the digits of `value` begin, of which the last stands before `end`.
char* put_hex(char* end, std::uint64_t value) {
  do *--end = "0123456789abcdef"[value & 15];
  while ((value >>= 4) != 0);
  return end;
}

constexpr std::size_t kTaskIdMax = 8 + 1 + 16;
char* put_task_id(char* end, TaskId id) {
  char* const dash = put_hex(end, id.lsn) - 1;
  *dash = '-';
  return put_hex(dash, id.epoch);
}

// Takes one lower-case hexadecimal number off the front of `text`; only the form put_hex writes is accepted.
template <class Number>
bool take_hex(std::string_view& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
  if (error != std::errc{} || (digits.size() > 1 && digits.front() == '0')) return false;
  for (const char digit : digits) {
    if (digit >= 'A' && digit <= 'F') return false;
  }
  text.remove_prefix(digits.size());
  return true;
}

bool take_dash(std::string_view& text) {
  if (!text.starts_with('-')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::uint64_t lease_nonce(const SecretKey& key, Epoch epoch, Lsn lease, Lsn task) {
  return keyed_hash(key, epoch, lease, task);
}

std::string to_text(TaskId id) {
  char text[kTaskIdMax];
  char* const end = text + sizeof text;
  return {put_task_id(end, id), end};
}

std::string to_text(LeaseId id) {
  char text[kTaskIdMax + 1 + 16];
  char* const end = text + sizeof text;
  char* begin = put_hex(end, id.nonce);
  *--begin = '-';
  return {put_task_id(begin, {id.epoch, id.lsn}), end};
}

std::string fence_text(LeaseId id) {
  std::string out(24, '0');
  const std::string epoch = to_text(TaskId{id.epoch, id.lsn});
  const std::size_t dash = epoch.find('-');
  out.replace(8 - dash, dash, epoch, 0, dash);
  out.replace(24 - (epoch.size() - dash - 1), std::string::npos, epoch, dash + 1);
  return out;
}

Result<TaskId> parse_task_id(std::string_view text) {
  TaskId id;
  if (take_hex(text, id.epoch) && take_dash(text) && take_hex(text, id.lsn) && text.empty()) return id;
  return failure(Errc::invalid_request, "a task id looks like 6743b0aa-1f");
}

Result<LeaseId> parse_lease_id(std::string_view text) {
  LeaseId id;
  if (take_hex(text, id.epoch) && take_dash(text) && take_hex(text, id.lsn) && take_dash(text) &&
      take_hex(text, id.nonce) && text.empty()) {
    return id;
  }
  return failure(Errc::invalid_request, "a lease id looks like 6743b0aa-20-9d0c51f3a7e2b884");
}

}  // namespace baton::core
