#include "server/audit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/files.h"
#include "wire/sha256.h"
#include "wire/text.h"

namespace baton::server {
namespace {

std::string hash_of(std::string_view line) {
  wire::Sha256 sum;
  sum.add(line);
  return sum.hex();
}

void put_member(std::string& out, std::string_view name, std::string_view value) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":", name);
  wire::put_json_string(out, value);
}

struct Line {
  std::uint64_t number;
  std::string_view before;
};

constexpr std::string_view kBegins = "{\"number\":";
constexpr std::string_view kBefore = ",\"before\":\"";
constexpr std::size_t kHashLetters = wire::kSha256Letters;

// Nothing if it is not whole.
std::optional<Line> parse(std::string_view line) {
  const std::size_t tail = kBefore.size() + kHashLetters + 2;
  if (!line.starts_with(kBegins) || !line.ends_with("\"}") || line.size() < kBegins.size() + tail) return {};
  Line read{0, line.substr(line.size() - kHashLetters - 2, kHashLetters)};
  if (line.substr(line.size() - tail, kBefore.size()) != kBefore) return {};
  const auto [end, error] =
      std::from_chars(line.data() + kBegins.size(), line.data() + line.size(), read.number);
  if (error != std::errc{} || *end != ',') return {};
  return read;
}

// What the first line ever follows from.
const std::string& no_hash() {
  static const std::string zeros(kHashLetters, '0');
  return zeros;
}

// Walks over the lines; tells the first one that contradicts another.
class History {
 public:
  std::optional<std::string> add(std::string_view line) {
    const auto read = parse(line);
    auto complaint = read ? complaint_of(*read) : std::nullopt;
    ++lines_;
    if (!read) unreadable_.push_back(lines_);
    if (read && !first_) first_ = read->number;
    // A line that a crash cut short follows from nothing, but takes a number.
    number_ = read ? read->number : number_ + 1;
    hash_ = hash_of(line);
    return complaint;
  }
  std::size_t lines() const { return lines_; }
  std::uint64_t first() const { return first_.value_or(0); }                  // 0: none can be read
  const std::vector<std::size_t>& unreadable() const { return unreadable_; }  // places in the file, from 1 on
  std::uint64_t number() const { return number_; }
  const std::string& hash() const { return hash_; }

 private:
  std::optional<std::string> complaint_of(const Line& read) const {
    if (lines_ == 0 && read.number == 1 && read.before != no_hash()) return "line 1 names a line before it";
    if (first_ && read.number != number_ + 1)
      return fmt::format("behind line {} comes line {}", number_, read.number);
    if (lines_ > 0 && read.before != hash_)
      return fmt::format("line {} is not what it was when line {} was written", number_, read.number);
    return {};
  }

  std::size_t lines_ = 0;
  std::optional<std::uint64_t> first_;
  std::vector<std::size_t> unreadable_;
  std::uint64_t number_ = 0;
  std::string hash_;
};

// Whether we may write there: what a crash leaves of a first line is the beginning of one.
bool is_of_audit(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return text.empty() || line.starts_with(kBegins) || (!line.empty() && kBegins.starts_with(line));
}

std::optional<std::string> walk(std::string_view text, History& history) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto complaint = history.add(text.substr(0, end))) return complaint;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

std::unexpected<Error> unwritten(const std::string& path) {
  return failure(Errc::io_failed,
                 fmt::format("the audit file cannot be written: {}: {}", path, std::strerror(errno)));
}

}  // namespace

Result<std::unique_ptr<Audit>> Audit::open(std::string path) {
  std::unique_ptr<Audit> audit(new Audit(std::move(path)));
  errno = 0;
  std::ifstream in(audit->path_, std::ios::binary);
  if (!in && errno != ENOENT)
    return failure(Errc::io_failed,
                   fmt::format("{}: cannot be read: {}", audit->path_, std::strerror(errno)));
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  if (!is_of_audit(text))
    return failure(Errc::corrupt,
                   fmt::format("{}: is not an audit file, and is left as it is", audit->path_));
  History history;
  if (auto complaint = walk(text, history))
    return failure(Errc::corrupt, fmt::format("{}: {}", audit->path_, *complaint));
  if (history.lines() > 0) {
    audit->number_ = history.number();
    audit->last_hash_ = history.hash();
  }
  if (auto opened = audit->open_file(); !opened) return std::unexpected(opened.error());
  const bool cut_short = !text.empty() && text.back() != '\n';
  if (cut_short && ::write(audit->file_->descriptor.number(), "\n", 1) != 1)
    return failure(Errc::io_failed, fmt::format("{}: {}", audit->path_, std::strerror(errno)));
  return audit;
}

Status Audit::open_file() {
  Descriptor opened(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!opened.is_open()) return failure(Errc::io_failed, fmt::format("{}: {}", path_, std::strerror(errno)));
  file_ = std::make_shared<File>(std::move(opened));
  return sync_directory(parent_of(path_));  // it may be new
}

Status Audit::reopen() { return open_file(); }

std::function<Status()> Audit::syncing() const {
  return [file = file_, path = path_]() -> Status {
    if (::fdatasync(file->descriptor.number()) == 0) return {};
    const auto refused = unwritten(path);
    file->is_lost = true;
    return refused;
  };
}

Status Audit::append(std::string members, Instant now) {
  if (file_->is_lost)
    return failure(Errc::io_failed,
                   fmt::format("{}: what was written before may be lost: put another file in its place and "
                               "send SIGHUP",
                               path_));
  std::string line =
      fmt::format("{}{},\"time\":{}{}{}{}\"}}", kBegins, number_ + 1, now.ms, members, kBefore, last_hash_);
  const std::string hash = hash_of(line);
  line += '\n';
  const int file = file_->descriptor.number();
  const off_t end = ::lseek(file, 0, SEEK_END);
  const ssize_t written = ::write(file, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) {
    const auto refused = unwritten(path_);
    // Half a line would spoil the next one.
    if (written > 0 && ::ftruncate(file, end) != 0) file_->is_lost = true;
    return refused;
  }
  ++number_;
  last_hash_ = hash;
  return {};
}

Result<std::uint64_t> Audit::began(const AuditedAction& action, Instant now) {
  std::string members;
  put_member(members, "who", action.who);
  put_member(members, "from", action.from);
  put_member(members, "what", action.what);
  for (const auto& [name, value] : action.arguments) put_member(members, name, value);
  put_member(members, "namespace", action.ns);
  if (auto written = append(std::move(members), now); !written) return std::unexpected(written.error());
  return number_;
}

Status Audit::ended(std::uint64_t number, std::string_view outcome, std::uint64_t lsn, Instant now) {
  std::string members = fmt::format(",\"ends\":{}", number);
  put_member(members, "outcome", outcome);
  fmt::format_to(std::back_inserter(members), ",\"lsn\":{}", lsn);
  return append(std::move(members), now);
}

Result<AuditedLines> check_audit(std::string_view text) {
  History history;
  if (auto complaint = walk(text, history)) return failure(Errc::corrupt, *complaint);
  const std::vector<std::size_t>& unreadable = history.unreadable();
  if (history.lines() > 0 && history.first() == 0)
    return failure(Errc::corrupt, "is not an audit file: no line of it can be read");
  if (!unreadable.empty())
    return failure(
        Errc::corrupt,
        fmt::format("line {} of the file cannot be read: cut short by a crash, or put there{}",
                    unreadable.front(),
                    unreadable.size() == 1 ? "" : fmt::format("; and {} more", unreadable.size() - 1)));
  return AuditedLines{.count = history.lines(), .first = history.first()};
}

}  // namespace baton::server
