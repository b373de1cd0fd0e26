#include "engine/snapshot_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace baton::engine {
namespace {

constexpr std::size_t kMovesAtOnce = 256;
constexpr int kRestPerWork = 5;

std::unexpected<Error> stopped() { return failure(Errc::closed, "the coordinator has stopped"); }

}  // namespace

SnapshotThread::SnapshotThread(Housekeeper& housekeeper, SnapshotCalls calls, SnapshotPace pace)
    : housekeeper_(housekeeper), calls_(std::move(calls)), pace_(pace), thread_([this] { run(); }) {}

void SnapshotThread::want() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(wanted_, true)) return;
  }
  wakes_.notify_one();
}

void SnapshotThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wakes_.notify_one();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard none_under_way(making_);
}

void SnapshotThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wakes_.wait(lock, [&] { return wanted_ || stops_; });
    if (stops_) return;
    lock.unlock();
    // Nobody waits for a snapshot, and those who wait for the loop need the processor more. But the log must
    // not grow for ever.
    auto rested = std::chrono::steady_clock::now();
    const Status done = make([&]() -> Status {
      const auto worked = std::chrono::steady_clock::now() - rested;
      std::unique_lock resting(mutex_);
      if (!housekeeper_.is_behind()) wakes_.wait_for(resting, worked * kRestPerWork, [&] { return stops_; });
      rested = std::chrono::steady_clock::now();
      if (stops_) return stopped();
      return {};
    });
    lock.lock();
    wanted_ = false;
    if (done || done.error().code == Errc::closed) continue;
    // Trying costs a replay, so not at every turn. But what has become free the log may take meanwhile. Where
    // there is room, a quota or what there is for files is used up, and looking at the disk tells nothing.
    const auto retry_at = std::chrono::steady_clock::now() + std::chrono::milliseconds(pace_.retry_after.ms);
    const bool lacks_room = done.error().code == Errc::no_space && !housekeeper_.has_room();
    calls_.note("no snapshot could be made: " + done.error().message);
    while (!stops_ && std::chrono::steady_clock::now() < retry_at) {
      wakes_.wait_for(lock, std::chrono::milliseconds(pace_.look_every.ms), [&] { return stops_; });
      if (lacks_room && housekeeper_.has_room()) break;
    }
  }
}

Status SnapshotThread::make_now() {
  return make([] { return Status{}; });
}

Status SnapshotThread::make(const std::function<Status()>& rest) {
  const std::lock_guard one_at_a_time(making_);
  {
    const std::lock_guard lock(mutex_);
    if (stops_) return stopped();
  }
  auto made = housekeeper_.make_snapshot(rest);
  if (!made) return std::unexpected(made.error());
  if (made->lsn == 0) return {};
  if (!calls_.record(*made)) return stopped();
  auto cleaned = housekeeper_.clean_up();
  if (!cleaned) return std::unexpected(cleaned.error());
  for (const std::string& note : cleaned->notes) calls_.note(note);
  // In groups, which share batches: one by one each would fill a block of its own, and the segment they come
  // to would be nearly dead in its turn.
  std::vector<core::MoveBlob>& moves = cleaned->moves;
  for (std::size_t at = 0; at < moves.size(); at += kMovesAtOnce) {
    const std::size_t count = std::min(kMovesAtOnce, moves.size() - at);
    if (!calls_.move(std::span(moves).subspan(at, count))) return stopped();
  }
  return cleaned->removed;
}

}  // namespace baton::engine
