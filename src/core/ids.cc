#include "core/ids.h"

#include <charconv>

namespace baton::core {
namespace {

void put_hex(std::string& out, std::uint64_t value) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, 16).ptr;
  out.append(digits, end);
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
  std::string out;
  put_hex(out, id.epoch);
  out += '-';
  put_hex(out, id.lsn);
  return out;
}

std::string to_text(LeaseId id) {
  std::string out = to_text(TaskId{id.epoch, id.lsn});
  out += '-';
  put_hex(out, id.nonce);
  return out;
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
