#include "engine/authority.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "base/check.h"
#include "base/mutant.h"
#include "engine/await.h"
#include "engine/recovery.h"

namespace baton::engine {
namespace {

constexpr int kExitLogFailed = 74;  // EX_IOERR
// Requests of one turn: from when on another thread flushes, and nothing more is read, and nothing handled.
constexpr std::size_t kFlushThere = 256;
constexpr std::size_t kTurnIsLong = 512;
constexpr std::size_t kPerTurn = 4096;
// Visits of one turn, and for how long: some look through thousands of tasks.
constexpr std::size_t kVisitsPerTurn = 32;
constexpr Duration kVisitsFor = milliseconds(10);

void fill_random(void* into, std::size_t bytes) {
  BATON_CHECK(getrandom(into, bytes, 0) == static_cast<ssize_t>(bytes));
}

// An entry has to fit the log's largest record. So a log with small batches takes only small payloads, and
// one in which the larger of the other entries have no room is not used at all.
Status fit_rules_to_log(const log::Options& log, core::Rules& rules) {
  constexpr std::size_t kLargestOther = 16 << 10;   // a LeasesExtended with all the leases it may have
  constexpr std::size_t kBesidesPayload = 4 << 10;  // names, capabilities and numbers of a TaskCreated
  const std::size_t entry_max = log::record_bytes_max(log);
  if (entry_max < kLargestOther) {
    return failure(Errc::invalid_request, "the log's batch_bytes has to be at least 16384");
  }
  rules.payload_bytes_max = std::min(rules.payload_bytes_max, entry_max - kBesidesPayload);
  rules.streams.entry_bytes_max = entry_max;
  return {};
}

Status check(const EngineOptions& options) {
  const bool fine = options.digest_every > 1 && options.due_per_turn > 0 &&
                    options.purge_visits_per_turn > 0 && options.rules.retention_age >= Duration{} &&
                    options.rules.tasks_max > 0;
  if (!fine) return failure(Errc::invalid_request, "an option of the engine is out of range");
  return {};
}

void print_note(const std::string& note) { std::fprintf(stderr, "baton: %s\n", note.c_str()); }

void end_process(const Error& error) {
  std::fprintf(stderr,
               "baton: the log cannot be written: %s\n"
               "baton: stopping without answering; a restart will find out what was recorded\n",
               error.message.c_str());
  _exit(kExitLogFailed);
}

}  // namespace

Authority::Authority(CoordinatorOptions options, std::function<void()> wake)
    : options_(std::move(options)), wake_(std::move(wake)) {
  if (!options_.on_fatal) options_.on_fatal = end_process;
  if (!options_.on_note) options_.on_note = print_note;
}

Result<std::unique_ptr<Authority>> Authority::open(const std::string& directory, CoordinatorOptions options,
                                                   std::function<void()> wake) {
  std::unique_ptr<Authority> authority(new Authority(std::move(options), std::move(wake)));
  EngineOptions& engine = authority->options_.engine;
  if (auto fits = fit_rules_to_log(authority->options_.log, engine.rules); !fits)
    return std::unexpected(fits.error());
  if (auto fine = check(engine); !fine) return std::unexpected(fine.error());
  engine.observer = [at = authority.get(), observer = std::move(engine.observer)](const core::Event& event,
                                                                                  const core::Stamp& stamp) {
    at->work_news_.saw(at->engine_->state(), event, stamp);
    if (observer) observer(event, stamp);
  };
  auto disk = log::PosixDisk::open_directory(directory);
  if (!disk) return std::unexpected(disk.error());
  authority->disk_ = std::move(*disk);
  if (auto started = authority->start(); !started) {
    const Error& error = started.error();
    if (error.code != Errc::corrupt && error.code != Errc::unsupported_version) return std::unexpected(error);
    return failure(error.code,
                   directory + ": " + error.message);  // the log knows no directory, only its files
  }
  return authority;
}

Status Authority::start() {
  RecoverOptions recover_options{.log = options_.log, .epoch_at_least = epoch_by_clock(clock().wall())};
  fill_random(recover_options.uuid_if_new.bytes.data(), recover_options.uuid_if_new.bytes.size());
  SecretKey key;
  fill_random(&key, sizeof key);

  const Duration began = clock().since_boot();
  auto recovered = recover(*disk_, recover_options);
  if (!recovered) return std::unexpected(recovered.error());
  recovery_ = {.snapshot = recovered->snapshot,
               .replayed = recovered->replayed,
               .took = clock().since_boot() - began,
               .notes = recovered->notes};
  for (const std::string& note : recovery_.notes) options_.on_note(note);

  const log::Uuid uuid = recovered->log.writer->uuid();
  time_ = std::make_unique<CoordinatorTime>(clock(), recovered->state.time);
  log_ = std::make_unique<log::FileLog>(std::move(recovered->log.writer), wake_);
  housekeeper_ = std::make_unique<Housekeeper>(*disk_, log_->segments(), uuid, recovered->snapshot,
                                               options_.housekeeping);
  engine_ = std::make_unique<Engine>(std::move(recovered->state), *log_, log_->epoch(), options_.engine);
  turns_ = std::make_unique<Turns>(
      Surroundings{*engine_, *log_, *disk_, *time_, *housekeeper_, options_.log, options_.on_note});

  // Everything that expired while nobody was looking is recorded before the first request is taken.
  for (bool all = false; !all;) {
    all = engine_->start(time_->now(), key);
    if (auto settled = log_->settle(); !settled) return settled;
  }
  snapshots_ = std::make_unique<SnapshotThread>(*housekeeper_, snapshot_calls());
  return {};
}

SnapshotCalls Authority::snapshot_calls() {
  const auto record = [this](const SnapshotMade& made) {
    bool recorded = false;
    await([&](std::shared_ptr<void> ticket) {
      run([made](Engine& engine) { return engine.record_snapshot(made.lsn, made.digest); },
          [&recorded, ticket = std::move(ticket)] { recorded = true; });
    });
    return recorded;
  };
  const auto move = [this](std::span<core::MoveBlob> blobs) {
    std::size_t moved = 0;
    await([&](const std::shared_ptr<void>& ticket) {
      for (core::MoveBlob& blob : blobs) ask(std::move(blob), [&moved, ticket](Answer) { ++moved; });
    });
    return moved == blobs.size();
  };
  return {record, move, options_.on_note};
}

Authority::~Authority() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  drop_everything();  // the snapshot thread may be waiting for an answer
  snapshots_.reset();
}

// Whoever waits for one of these learns that no answer will come. Outside of any lock: a callback that goes
// may run code of its owner.
void Authority::drop_everything() {
  std::vector<Asked> dropped;
  std::vector<Visit> dropped_visits;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(inbox_);
    dropped_visits.swap(visits_inbox_);
  }
  dropped.clear();
  dropped_visits.clear();
  taken_.clear();
  visits_.clear();
  next_ = 0;
  callers_.clear();
  visitors_.clear();
}

template <class Add>
bool Authority::put(const Add& add) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    const bool is_first = inbox_.empty() && visits_inbox_.empty();
    add();
    if (!is_first) return true;  // who came first has woken it
  }
  wake_();
  return true;
}

bool Authority::ask(core::Request request, Done done) {
  return put([&] {
    inbox_.push_back({std::move(request), std::move(done)});
    ++asked_;
  });
}

bool Authority::run(std::function<bool(Engine&)> now, std::function<void()> then) {
  return put([&] { visits_inbox_.push_back({std::move(now), std::move(then), asked_}); });
}

Duration Authority::wait() {
  if (next_ < taken_.size() || !visits_.empty()) {
    // What is left over has its turn at once, or waits for room in the log, that is, for the flush in flight
    // or the next segment.
    return log_->has_room() && !log_->awaits_successor() ? Duration{} : turns_->wait();
  }
  const std::lock_guard lock(mutex_);
  return inbox_.empty() && visits_inbox_.empty() ? turns_->wait() : Duration{};
}

void Authority::begin_turn(bool quiet) {
  turns_->begin(quiet);
  handled_ = received_ = look_again_at_ = 0;
  receive_visits();  // first, for one of them may have to find room in the log
  handle_taken();
  // Behind what was left over, and before anything is asked here.
  if (next_ == taken_.size()) take_inbox();
  handle_taken();
  receive_visits();
  from_inbox_ = handled_;
  may_ask_here_ = next_ == taken_.size();
}

// Whoever finds no room waits in the inbox, and nobody who comes later overtakes him.
bool Authority::ask_here(core::Request& request, const Done& done) {
  may_ask_here_ = may_ask_here_ && !stopping_ && may_handle() && engine_->handle(0, request);
  if (!may_ask_here_) return ask(std::move(request), done);
  ++handled_;
  callers_.push_back(done);
  return true;
}

const Answer* Authority::decide_here(core::Request& request) {
  if (!may_ask_here_ || stopping_ || !may_handle()) return nullptr;
  const Answer* answer = engine_->decide(request);
  if (answer != nullptr) ++handled_;
  return answer;
}

void Authority::when_durable(std::function<void()> then) {
  visitors_.emplace_back(engine_->state().last, std::move(then));
}

bool Authority::is_turn_long() const { return handled_ - from_inbox_ >= kTurnIsLong; }

std::size_t Authority::waiting() {
  const std::lock_guard lock(mutex_);
  return taken_.size() - next_ + inbox_.size();
}

bool Authority::end_turn() {
  may_ask_here_ = false;
  if (mutant(Mutant::m1_reply_before_flush)) deliver();
  flush();
  deliver();
  if (auto failed = log_->failure(); !failed) {
    give_up(failed.error());
    return false;
  }
  if (turns_->end()) snapshots_->want();
  return !finish();
}

void Authority::take_inbox() {
  taken_.clear();
  next_ = 0;
  const std::lock_guard lock(mutex_);
  taken_.swap(inbox_);
  std::ranges::move(visits_inbox_, std::back_inserter(visits_));
  visits_inbox_.clear();
}

// So that time and the disk are looked at often enough.
bool Authority::may_handle() {
  if (handled_ < look_again_at_) return true;
  const bool may = handled_ < kPerTurn && !log_->awaits_successor();
  if (may) look_again_at_ = handled_ + kTurnIsLong;
  return may;
}

void Authority::handle_taken() {
  for (; next_ < taken_.size() && may_handle() && handle(taken_[next_]); ++next_) ++handled_, ++decided_;
}

// At least one in every turn, and no more than fit into it: whoever completes or renews is not to wait for
// those who ask.
void Authority::receive_visits() {
  while (!visits_.empty() && visits_.front().after <= decided_) {
    const bool is_late = received_ > 0 && time_->now() - engine_->now() >= kVisitsFor;
    if (is_late || received_ == kVisitsPerTurn) return;
    Visit& visit = visits_.front();
    if (!visit.now(*engine_)) return;
    ++received_, ++handled_;
    when_durable(std::move(visit.then));
    visits_.pop_front();
  }
}

// The flush of a small turn happens here: answers come sooner than by way of another thread, and who asks
// meanwhile makes the next flush worth more. After a large one there is the next to be decided while the
// flush is under way.
void Authority::flush() {
  const bool is_small = handled_ > 0 && handled_ < kFlushThere;
  is_small && !mutant(Mutant::m1_reply_before_flush) ? log_->flush_here() : log_->start_flush();
}

bool Authority::handle(Asked& asked) {
  if (!engine_->handle(0, asked.request)) return false;
  callers_.push_back(std::move(asked.done));
  return true;
}

void Authority::deliver() {
  engine_->release([&](Answer&& answer) {
    callers_.front()(std::move(answer));
    callers_.pop_front();
  });
  const core::Lsn durable = mutant(Mutant::m1_reply_before_flush) ? engine_->state().last : log_->durable();
  while (!visitors_.empty() && visitors_.front().first <= durable) {
    if (visitors_.front().second) visitors_.front().second();
    visitors_.pop_front();
  }
  work_news_.durable(log_->durable());
}

// At a stop, once everything asked has been answered: the last entry, and the log's clean end.
bool Authority::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_ || !inbox_.empty() || !visits_inbox_.empty()) return false;
  }
  const bool quiet =
      next_ == taken_.size() && visits_.empty() && !engine_->has_waiting_answers() && visitors_.empty();
  if (!quiet || !engine_->seal()) return false;
  outcome_ = log_->close();
  return true;
}

void Authority::give_up(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  options_.on_fatal(error);
  drop_everything();
  outcome_ = std::unexpected(error);
}

void Authority::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_();
}

Status Authority::close() {
  snapshots_->stop();
  turns_.reset();
  engine_.reset();
  log_.reset();
  disk_.reset();  // another process may have the directory now
  return outcome_;
}

Status Authority::make_snapshot() { return snapshots_->make_now(); }

}  // namespace baton::engine
