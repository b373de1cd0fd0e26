#include "tests/sim/crash_check.h"

#include <fmt/format.h>

#include <vector>

#include "log/recovery.h"
#include "tests/sim/sim_disk.h"

namespace baton::sim {
namespace {

using log::Lsn;
using log::Place;

// Three small batches fill a segment, so that a few operations rotate.
constexpr log::Options kOptions{.segment_bytes = 20 << 10, .batch_bytes = 2048};
constexpr std::size_t kSmallBytes = 40;
constexpr std::size_t kLargeBytes = 2000;
constexpr std::size_t kAllSubsetsUpTo = 8;
constexpr std::string_view kOperations = "ALFRTC";

struct Appended {
  Place place;
  Bytes body;
};

// What the outside world knows.
struct History {
  std::vector<Appended> records;  // by lsn - 1
  Lsn acknowledged = 0;
  Lsn needed_from = 1;
};

class Violation {
 public:
  const std::optional<std::string>& found() const { return found_; }
  void report(std::string what) {
    if (!found_) found_ = std::move(what);
  }

 private:
  std::optional<std::string> found_;
};

Bytes body_of(Lsn lsn, std::size_t length) {
  Bytes body(length);
  SplitMix64 random{lsn};
  for (std::byte& byte : body) byte = static_cast<std::byte>(random.next());
  return body;
}

// One process that uses the log: opens it, checks what it finds against history, and goes on.
class Process {
 public:
  Process(SimDisk& disk, History& history, Violation& violation)
      : disk_(disk), history_(history), violation_(violation) {}

  // False if the process died, of an injected failure.
  bool open(bool failures_expected);
  bool operate(char operation);

 private:
  bool append(std::size_t length);
  bool flush();
  bool rotate();
  bool remove_oldest();

  SimDisk& disk_;
  History& history_;
  Violation& violation_;
  std::unique_ptr<log::LogWriter> writer_;
};

bool Process::open(bool failures_expected) {
  Lsn next = history_.needed_from;
  auto opened = log::open_log(disk_, {.log = kOptions, .needed_from = history_.needed_from},
                              [&](const log::Record& record) -> Status {
                                const bool known =
                                    record.place.lsn == next && next <= history_.records.size() &&
                                    record.place == history_.records[next - 1].place &&
                                    std::ranges::equal(record.body, history_.records[next - 1].body);
                                if (!known)
                                  violation_.report(fmt::format("record {} was never appended", next));
                                ++next;
                                return {};
                              });
  if (!opened) {
    if (!failures_expected || opened.error().code != Errc::io_failed) {
      violation_.report("recovery refused: " + opened.error().message);
    }
    return false;
  }
  const Lsn last = opened->end.tail.last;
  if (last < history_.acknowledged) {
    violation_.report(
        fmt::format("record {} was acknowledged, the log ends at {}", history_.acknowledged, last));
  }
  if (next != last + 1) violation_.report(fmt::format("the log ends at {} and replay at {}", last, next - 1));
  if (disk_.rewritten_sectors() != 0) violation_.report("a sector that was on the medium was written again");
  if (violation_.found()) return false;
  history_.records.resize(last);
  history_.acknowledged = last;
  writer_ = std::move(opened->writer);
  return true;
}

bool Process::append(std::size_t length) {
  if (!writer_->has_room() && !flush()) return false;
  Bytes body = body_of(writer_->last() + 1, length);
  const Place place = writer_->append(7, Instant{static_cast<std::int64_t>(writer_->last()) * 10}, body);
  history_.records.push_back({place, std::move(body)});
  return true;
}

bool Process::flush() {
  auto flush = writer_->begin_flush();
  if (!flush) return true;
  if (!writer_->perform(*flush)) return false;
  writer_->finish(std::move(*flush));
  history_.acknowledged = writer_->durable();
  return true;
}

bool Process::rotate() {
  const std::size_t before = writer_->segments().list().size();
  while (writer_->segments().list().size() == before) {
    if (!append(kSmallBytes) || !flush()) return false;
  }
  return true;
}

// As after a snapshot: the records in the segment are no longer needed.
bool Process::remove_oldest() {
  const auto segments = writer_->segments().list();
  if (segments.size() < 2) return true;
  history_.needed_from = segments[0].last + 1;
  return writer_->segments().remove(segments[0].first).has_value();
}

bool Process::operate(char operation) {
  switch (operation) {
    case 'A': return append(kSmallBytes);
    case 'L': return append(kLargeBytes);
    case 'F': return flush();
    case 'R': return rotate();
    case 'T': return remove_oldest();
    case 'C': return flush() && writer_->close() && open(true);
  }
  return false;
}

// Calls `visit` with every way in which the pending changes may survive a crash, or a sample of them.
template <class Visit>
void each_survival(const SimDisk& disk, std::size_t samples, SplitMix64& random, Visit visit) {
  const std::size_t pending = disk.pending();
  const auto crash = [&](auto keep) {
    SimDisk image(disk);
    std::size_t index = 0;
    image.crash([&] { return keep(index++); });
    visit(image);
  };
  if (pending <= kAllSubsetsUpTo && (std::size_t{1} << pending) <= samples) {
    for (std::size_t mask = 0; mask < std::size_t{1} << pending; ++mask) {
      crash([&](std::size_t index) { return (mask >> index & 1) != 0; });
    }
    return;
  }
  crash([](std::size_t) { return false; });
  crash([](std::size_t) { return true; });
  for (std::size_t sample = 2; sample < samples; ++sample) {
    crash([&](std::size_t) { return (random.next() & 1) != 0; });
  }
}

class Checker {
 public:
  explicit Checker(const CrashBounds& bounds) : bounds_(bounds) {}

  CrashCheck power_cuts() {
    each_sequence([&](const std::string& sequence) { cut_power(sequence); });
    return std::move(result_);
  }
  CrashCheck failures() {
    each_sequence([&](const std::string& sequence) { fail_each(sequence); });
    return std::move(result_);
  }

 private:
  template <class Visit>
  void each_sequence(Visit visit) {
    std::vector<std::string> sequences{""};
    for (std::size_t at = 0; at < sequences.size() && !result_.violation; ++at) {
      const std::string sequence = sequences[at];
      ++result_.sequences;
      visit(sequence);
      if (violation_.found())
        result_.violation = fmt::format("after [{}]: {}", sequence, *violation_.found());
      if (sequence.size() == static_cast<std::size_t>(bounds_.operations_max)) continue;
      for (const char operation : kOperations) sequences.push_back(sequence + operation);
    }
  }

  void cut_power(const std::string& sequence);
  void recover(SimDisk& image, const History& history, bool interrupt);
  void interrupt_recovery(SimDisk& image, const History& history);
  void fail_each(const std::string& sequence);

  const CrashBounds bounds_;
  CrashCheck result_;
  Violation violation_;
  SplitMix64 random_{1};
};

// The power goes only during the last operation: what comes before it is a sequence of its own.
void Checker::cut_power(const std::string& sequence) {
  SimDisk disk;
  History history;
  const auto cut = [&] {
    if (violation_.found()) return;
    SimDisk killed(disk);
    interrupt_recovery(killed, history);  // the process dies, the machine goes on
    each_survival(disk, std::size_t{1} << kAllSubsetsUpTo, random_, [&](SimDisk& image) {
      recover(image, history, random_.below(bounds_.second_crash_one_in) == 0);
    });
  };
  if (sequence.empty()) disk.before_operation = cut;
  Process process(disk, history, violation_);
  if (!process.open(false)) return;
  for (std::size_t at = 0; at < sequence.size(); ++at) {
    if (at + 1 == sequence.size()) disk.before_operation = cut;
    if (!process.operate(sequence[at])) violation_.report("an operation failed on a disk that works");
  }
  cut();
}

void Checker::recover(SimDisk& image, const History& history, bool interrupt) {
  if (violation_.found()) return;
  if (interrupt) {
    SimDisk copy(image);
    interrupt_recovery(copy, history);
  }
  ++result_.recoveries;
  History now = history;
  Process process(image, now, violation_);
  process.open(false);
}

// Recovers, writes two more batches, and loses power at each step on the way.
void Checker::interrupt_recovery(SimDisk& image, const History& history) {
  History now = history;
  image.before_operation = [&] {
    each_survival(image, 6, random_, [&](SimDisk& after) {
      ++result_.interrupted_recoveries;
      History then = now;
      Process process(after, then, violation_);
      if (!violation_.found()) process.open(false);
    });
  };
  Process process(image, now, violation_);
  if (!process.open(false)) return;
  for (const char operation : std::string_view("AFLF")) {
    if (!violation_.found()) process.operate(operation);
  }
  image.before_operation = nullptr;
}

void Checker::fail_each(const std::string& sequence) {
  // Runs until it ends or dies; then restarts it as it is, and after a power cut.
  const auto run = [&](auto prepare) {
    SimDisk disk;
    prepare(disk);
    History history;
    Process process(disk, history, violation_);
    bool alive = process.open(true);
    for (const char operation : sequence) alive = alive && process.operate(operation);
    disk.fail_sync(0, SyncFault::lies);
    disk.fail_operation(0);
    each_survival(disk, 6, random_, [&](SimDisk& image) { recover(image, history, false); });
    const std::pair counts(disk.operations(), disk.syncs());
    recover(disk, history, false);
    return counts;
  };
  const auto [operations, syncs] = run([](SimDisk&) {});
  for (std::uint64_t sync = 1; sync <= syncs && !violation_.found(); ++sync) {
    run([&](SimDisk& disk) { disk.fail_sync(sync, SyncFault::keeps_cache); });
    run([&](SimDisk& disk) { disk.fail_sync(sync, SyncFault::drops_cache); });
  }
  for (std::uint64_t operation = 1; operation <= operations && !violation_.found(); ++operation) {
    run([&](SimDisk& disk) { disk.fail_operation(operation); });
  }
}

}  // namespace

CrashCheck check_power_cuts(const CrashBounds& bounds) { return Checker(bounds).power_cuts(); }
CrashCheck check_failures(const CrashBounds& bounds) { return Checker(bounds).failures(); }

}  // namespace baton::sim
