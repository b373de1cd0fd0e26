#include "engine/loop.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <semaphore>
#include <span>
#include <utility>

#include "base/check.h"
#include "engine/admission.h"
#include "engine/recovery.h"

namespace baton {
namespace {

constexpr Duration kDiskCheckEvery = seconds(1);
constexpr Duration kMarkWhenIdleFor = milliseconds(50);
constexpr std::size_t kMovesAtOnce = 256;
constexpr std::chrono::seconds kRetrySnapshotAfter(60);
constexpr Duration kWallCheckEvery = hours(1);
constexpr Duration kWallDistance = seconds(5);
constexpr int kExitLogFailed = 74;  // EX_IOERR

void fill_random(void* into, std::size_t bytes) {
  BATON_CHECK(getrandom(into, bytes, 0) == static_cast<ssize_t>(bytes));
}

// At least one more than any before, and after a backup was restored more than any the lost log gave out.
core::Epoch epoch_by_clock(Instant wall) {
  constexpr std::int64_t k2020 = 1'577'836'800;
  return static_cast<core::Epoch>(std::clamp<std::int64_t>(wall.ms / 1000 - k2020, 1, UINT32_MAX));
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
  return {};
}

Status check(const engine::EngineOptions& options) {
  const bool fine = options.digest_every > 1 && options.due_per_turn > 0 &&
                    options.purge_visits_per_turn > 0 && options.rules.retention_age >= Duration{} &&
                    options.rules.tasks_max > 0;
  if (!fine) return failure(Errc::invalid_request, "an option of the engine is out of range");
  return {};
}

void end_process(const Error& error) {
  std::fprintf(stderr,
               "baton: the log cannot be written: %s\n"
               "baton: stopping without answering; a restart will find out what was recorded\n",
               error.message.c_str());
  _exit(kExitLogFailed);
}

}  // namespace

Result<std::unique_ptr<Coordinator::Loop>> Coordinator::Loop::open(const std::string& directory,
                                                                   CoordinatorOptions options) {
  std::unique_ptr<Loop> loop(new Loop);
  loop->options_ = std::move(options);
  if (!loop->options_.on_fatal) loop->options_.on_fatal = end_process;
  if (!loop->options_.on_note) {
    loop->options_.on_note = [](const std::string& note) {
      std::fprintf(stderr, "baton: %s\n", note.c_str());
    };
  }
  if (auto fits = fit_rules_to_log(loop->options_.log, loop->options_.engine.rules); !fits)
    return std::unexpected(fits.error());
  if (auto fine = check(loop->options_.engine); !fine) return std::unexpected(fine.error());
  auto disk = log::PosixDisk::open_directory(directory);
  if (!disk) return std::unexpected(disk.error());
  loop->disk_ = std::move(*disk);
  if (auto started = loop->start(); !started) return std::unexpected(started.error());
  return loop;
}

Status Coordinator::Loop::start() {
  engine::RecoverOptions recover_options{.log = options_.log,
                                         .epoch_at_least = epoch_by_clock(clock_.wall())};
  fill_random(recover_options.uuid_if_new.bytes.data(), recover_options.uuid_if_new.bytes.size());
  SecretKey key;
  fill_random(&key, sizeof key);

  const Duration began = clock_.since_boot();
  auto recovered = engine::recover(*disk_, recover_options);
  if (!recovered) return std::unexpected(recovered.error());
  recovery_ = {.snapshot = recovered->snapshot,
               .replayed = recovered->replayed,
               .took = clock_.since_boot() - began,
               .notes = recovered->notes};
  for (const std::string& note : recovery_.notes) options_.on_note(note);

  const log::Uuid uuid = recovered->log.writer->uuid();
  time_ = std::make_unique<engine::CoordinatorTime>(clock_, recovered->state.time);
  log_ = std::make_unique<log::FileLog>(std::move(recovered->log.writer), [this] { wake(); });
  housekeeper_ = std::make_unique<engine::Housekeeper>(*disk_, log_->segments(), uuid, recovered->snapshot,
                                                       options_.housekeeping);
  engine_ =
      std::make_unique<engine::Engine>(std::move(recovered->state), *log_, log_->epoch(), options_.engine);

  // Everything that expired while nobody was looking is recorded before the first request is taken.
  for (bool all = false; !all || log_->durable() < log_->last();) {
    all = engine_->start(time_->now(), key);
    log_->start_flush();
    if (auto failed = log_->failure(); !failed) return failed;
    std::unique_lock lock(mutex_);
    loop_wakes_.wait_for(lock, std::chrono::milliseconds(100), [&] { return std::exchange(woken_, false); });
  }
  loop_thread_ = std::thread([this] { run_loop(); });
  housekeeping_thread_ = std::thread([this] { run_housekeeping(); });
  return {};
}

Coordinator::Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  loop_wakes_.notify_one();
  if (loop_thread_.joinable()) loop_thread_.join();
  drop_everything();  // housekeeping may be waiting for an answer
  {
    const std::lock_guard lock(housekeeping_mutex_);
    housekeeping_stops_ = true;
  }
  housekeeping_wakes_.notify_one();
  if (housekeeping_thread_.joinable()) housekeeping_thread_.join();
}

// Whoever waits for one of these learns that no answer will come. Outside of any lock: a callback that goes
// may run code of its owner.
void Coordinator::Loop::drop_everything() {
  std::vector<Item> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(inbox_);
  }
  dropped.clear();
  taken_.clear();
  next_ = 0;
  callers_.clear();
  visitors_.clear();
}

void Coordinator::Loop::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  loop_wakes_.notify_one();
}

bool Coordinator::Loop::put(Item item) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || abandoned_) return false;
    inbox_.push_back(std::move(item));
  }
  loop_wakes_.notify_one();
  return true;
}

bool Coordinator::Loop::ask(core::Request request, std::function<void(engine::Answer)> done) {
  return put(Asked{std::move(request), std::move(done)});
}

bool Coordinator::Loop::run(std::function<bool(engine::Engine&)> now, std::function<void()> then) {
  return put(Visit{std::move(now), std::move(then)});
}

// Waits until there is something to do. False when it is all over.
bool Coordinator::Loop::take_inbox() {
  const bool marked = engine_->state().last == marked_;
  std::int64_t wait_ms = marked ? kDiskCheckEvery.ms : kMarkWhenIdleFor.ms;
  if (const auto due = engine_->next_due()) {
    wait_ms = std::clamp<std::int64_t>((*due - time_->now()).ms, 0, wait_ms);
  }
  // What is left over has its turn at once, or waits for room in the log, that is, for the flush in flight.
  const bool idle = next_ == taken_.size();
  const bool at_once = !idle && log_->has_room();
  if (idle) {
    taken_.clear();
    next_ = 0;
  }
  bool quiet = false;
  {
    std::unique_lock lock(mutex_);
    const auto something = [&] { return at_once || woken_ || abandoned_ || (idle && !inbox_.empty()); };
    quiet = !loop_wakes_.wait_for(lock, std::chrono::milliseconds(wait_ms), something);
    woken_ = false;
    if (idle) taken_.swap(inbox_);
    if (abandoned_) return false;
  }
  if (quiet && !marked && engine_->mark()) marked_ = engine_->state().last;
  return true;
}

void Coordinator::Loop::run_loop() {
  while (take_inbox()) {
    // Read after waiting, so that no request is judged by a time from before a pause.
    engine_->begin_turn(time_->now());
    handle_taken();
    log_->start_flush();
    deliver();
    if (auto failed = log_->failure(); !failed) return give_up(failed.error());
    check_disk();
    if (finish()) return;
  }
}

// The disk is given work as soon as there is some: what is handled meanwhile leaves with the next flush.
void Coordinator::Loop::handle_taken() {
  constexpr std::size_t kFlushAfter = 16;
  constexpr std::size_t kPerTurn = 4096;  // so that time and the disk are looked at often enough
  for (std::size_t handled = 1; next_ < taken_.size() && handled <= kPerTurn && handle(taken_[next_]);
       ++handled) {
    ++next_;
    if (handled % kFlushAfter == 0) log_->start_flush();
  }
}

bool Coordinator::Loop::handle(Item& item) {
  if (auto* asked = std::get_if<Asked>(&item)) {
    if (!engine_->handle(0, asked->request)) return false;
    callers_.push_back(std::move(asked->done));
    return true;
  }
  auto& visit = std::get<Visit>(item);
  if (!visit.now(*engine_)) return false;
  visitors_.emplace_back(engine_->state().last, std::move(visit.then));
  return true;
}

void Coordinator::Loop::deliver() {
  engine_->release([&](engine::Answer answer) {
    callers_.front()(std::move(answer));
    callers_.pop_front();
  });
  while (!visitors_.empty() && visitors_.front().first <= log_->durable()) {
    if (visitors_.front().second) visitors_.front().second();
    visitors_.pop_front();
  }
}

// The disk is looked at every second, whenever a segment was begun, and in every turn while the next one
// cannot be made: what is let in between two looks has to fit into what is set aside.
void Coordinator::Loop::check_disk() {
  const bool due = engine_->now() - disk_checked_ >= kDiskCheckEvery;
  const std::uint64_t left = log_->left_in_segment();
  const bool segment_begun = left > std::exchange(left_in_segment_, left);
  if (!due && !segment_begun && log_->can_rotate()) return;
  const auto free = disk_->free_bytes();
  if (!free) return;  // nothing is known, so nothing changes
  engine_->admit(engine::admission_for({.free_bytes = *free,
                                        .segment_bytes = options_.log.segment_bytes,
                                        .batch_bytes_max = log::batch_extent_max(options_.log),
                                        .left_in_segment = left,
                                        .successor_ready = log_->can_rotate()}));
  if (!due) return;
  disk_checked_ = engine_->now();
  check_wall_clock();
  if (!log_->can_rotate()) log_->retry_successor();
  if (!housekeeper_->is_due()) return;
  {
    const std::lock_guard lock(housekeeping_mutex_);
    housekeeping_wanted_ = true;
  }
  housekeeping_wakes_.notify_one();
}

// T does not follow a wall clock that was set; an operator should know, since the next start may.
void Coordinator::Loop::check_wall_clock() {
  if (engine_->now() - wall_checked_ < kWallCheckEvery) return;
  const Duration ahead = time_->ahead_of_wall();
  if (ahead < kWallDistance && Duration{} - ahead < kWallDistance) return;
  wall_checked_ = engine_->now();
  options_.on_note(
      "coordinator time is " + std::to_string(ahead.ms) +
      " ms ahead of the wall clock, which was set; leases are not affected before the next start");
}

// At a stop, once everything asked has been answered: the last entry, and the log's clean end.
bool Coordinator::Loop::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_ || !inbox_.empty()) return false;
  }
  const bool quiet = next_ == taken_.size() && !engine_->has_waiting_answers() && visitors_.empty();
  if (!quiet || !engine_->seal()) return false;
  closed_ = log_->close();
  return true;
}

void Coordinator::Loop::give_up(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  options_.on_fatal(error);
  drop_everything();
  closed_ = std::unexpected(error);
}

Status Coordinator::Loop::close() {
  {
    const std::lock_guard lock(housekeeping_mutex_);
    housekeeping_stops_ = true;
  }
  housekeeping_wakes_.notify_one();
  if (housekeeping_thread_.joinable()) housekeeping_thread_.join();
  const std::lock_guard no_more_snapshots(tidying_);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = woken_ = true;
  }
  loop_wakes_.notify_one();
  if (loop_thread_.joinable()) loop_thread_.join();
  engine_.reset();
  housekeeper_.reset();
  log_.reset();
  disk_.reset();  // another process may have the directory now
  return closed_;
}

void Coordinator::Loop::run_housekeeping() {
  std::unique_lock lock(housekeeping_mutex_);
  for (;;) {
    housekeeping_wakes_.wait(lock, [&] { return housekeeping_wanted_ || housekeeping_stops_; });
    if (housekeeping_stops_) return;
    housekeeping_wanted_ = false;
    lock.unlock();
    const Status done = tidy();
    lock.lock();
    if (done || done.error().code == Errc::closed) continue;
    options_.on_note("no snapshot could be made: " + done.error().message);
    // Trying costs a replay, so not at every turn.
    housekeeping_wakes_.wait_for(lock, kRetrySnapshotAfter, [&] { return housekeeping_stops_; });
  }
}

Status Coordinator::Loop::tidy() {
  const std::lock_guard lock(tidying_);
  if (!housekeeper_) return failure(Errc::closed, "the coordinator has stopped");
  auto made = housekeeper_->make_snapshot();
  if (!made) return std::unexpected(made.error());
  if (made->lsn == 0) return {};
  // Waits on a semaphore that is also released when the loop drops the visit.
  const auto wait_for = [&](const auto& ask) {
    std::binary_semaphore passed(0);
    ask(std::shared_ptr<void>(nullptr, [&](void*) { passed.release(); }));
    passed.acquire();
  };
  bool recorded = false;
  wait_for([&](std::shared_ptr<void> ticket) {
    run([made = *made](engine::Engine& engine) { return engine.record_snapshot(made.lsn, made.digest); },
        [&recorded, ticket = std::move(ticket)] { recorded = true; });
  });
  if (!recorded) return failure(Errc::closed, "the coordinator has stopped");
  auto moves = housekeeper_->clean_up();
  if (!moves) return std::unexpected(moves.error());
  // In groups, which share batches: one by one each would fill a block of its own, and the segment they come
  // to would be nearly dead in its turn.
  for (std::size_t at = 0; at < moves->size(); at += kMovesAtOnce) {
    wait_for([&](const std::shared_ptr<void>& ticket) {
      for (core::MoveBlob& move : std::span(*moves).subspan(at, std::min(kMovesAtOnce, moves->size() - at))) {
        ask(std::move(move), [ticket](engine::Answer) {});
      }
    });
  }
  return {};
}

Result<Bytes> Coordinator::Loop::read(const core::BlobRef& blob) {
  if (!log_) return failure(Errc::closed, "the coordinator has stopped");
  if (blob.length == 0) return Bytes{};
  auto bytes = log_->segments().read(blob.lsn, blob.offset, blob.length);
  if (bytes && content_hash(*bytes) != blob.hash) {
    return failure(Errc::corrupt, "the bytes kept with entry " + std::to_string(blob.lsn) +
                                      " are damaged; run `baton log verify` and restore from a backup");
  }
  return bytes;
}

}  // namespace baton
