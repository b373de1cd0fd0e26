#include "checkpoint/async_saver.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "checkpoint/io_engine.h"
#include "checkpoint/turns.h"
#include "checkpoint/with_memory.h"

namespace baton::checkpoint {

struct Ticket::State {
  std::mutex mutex;
  std::condition_variable done;
  std::optional<Result<SaveResult>> result;
  bool was_heard = false;
  std::stop_source stop;
};

bool Ticket::is_done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->result.has_value();
}

bool Ticket::is_committed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->result && *state_->result;
}

bool Ticket::is_done_within(Duration at_most) const {
  std::unique_lock lock(state_->mutex);
  return state_->done.wait_for(lock, std::chrono::milliseconds(at_most.ms),
                               [&] { return state_->result.has_value(); });
}

Result<SaveResult> Ticket::wait(Duration at_most) const {
  if (!is_done_within(at_most)) return failure(Errc::deadline_exceeded, "the save is still under way");
  const std::lock_guard lock(state_->mutex);
  state_->was_heard = true;
  return *state_->result;
}

void Ticket::cancel() const { state_->stop.request_stop(); }

// Copies are made on the caller's thread, into memory that stays for the next save: fresh memory would cost
// more than the copy. The thread of each save is joined before the next one begins.
class AsyncSaver::Worker {
 public:
  Worker(std::unique_ptr<Collective> stream, std::shared_ptr<Turns> turns, Storage& storage,
         const AsyncOptions& options)
      : stream_(std::move(stream)), turns_(std::move(turns)), storage_(storage), options_(options) {}
  ~Worker() {
    if (auto closed = with_memory("say why", [&] { return finish_last(); }); !closed)
      std::fprintf(stderr, "baton: a checkpoint was not saved: %s\n", closed.error().message.c_str());
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  Result<Ticket> save(const std::string& prefix, const ShardData& mine, const SaveOptions& options) {
    const Status finished = finish_last();
    if (options.stop.stop_requested()) {
      // What there is now may not be what was to be saved, and nobody may wait for what this call says.
      if (!finished) tell_later(finished.error());
      return begin(prefix, failure(Errc::closed, "it was stopped"), options, {});
    }
    auto staged = finished ? with_memory("save", [&] { return stage(mine); })
                           : Result<ShardData>(std::unexpected(finished.error()));
    return begin(prefix, std::move(staged), options, finished);
  }

  Result<Ticket> refuse(const std::string& prefix, const Error& why, const SaveOptions& options) {
    if (auto earlier = finish_last(); !earlier) tell_later(earlier.error());
    return begin(prefix, std::unexpected(why), options, {});
  }

  Status finish_last() {
    if (thread_.joinable()) thread_.join();
    const auto last = std::exchange(last_, nullptr);
    if (auto before = std::exchange(unheard_, {})) return std::unexpected(*std::move(before));
    if (!last) return {};
    const std::lock_guard lock(last->mutex);
    if (last->was_heard || *last->result) return {};
    return std::unexpected(last->result->error());
  }

  void tell_later(const Error& unheard) { unheard_ = unheard; }

  bool let_memory_go() {
    if (last_ && !Ticket(last_).is_done()) return false;
    if (thread_.joinable()) thread_.join();  // which has done what takes long
    memory_.reset();
    capacity_ = 0;
    if (unheard_) return false;
    if (!last_) return true;
    const std::lock_guard lock(last_->mutex);
    return last_->was_heard || *last_->result;
  }

 private:
  // An earlier failure that nobody here has heard of is returned; the others hear of it from the thread,
  // which takes part in this save for that.
  Result<Ticket> begin(const std::string& prefix, Result<ShardData> staged, const SaveOptions& options,
                       const Status& earlier) {
    if (!earlier)
      staged = failure(earlier.error().code, "the save before this one failed: " + earlier.error().message);
    const auto state = std::make_shared<Ticket::State>();
    state->was_heard = !earlier;
    Result<Ticket> told = earlier ? Result<Ticket>(Ticket(state)) : std::unexpected(staged.error());
    save_ = [this, prefix, options = options, staged = std::move(staged), state](Turns::Turn turn) mutable {
      turns_->wait(turn);
      run(prefix, std::move(staged), options, *state);
      turns_->end();
    };
    // From here on nothing needs memory that must not fail: a turn that was taken has to end.
    last_ = state;
    const Turns::Turn turn = turns_->take();
    try {
      thread_ = std::jthread([this, turn] { save_(turn); });
    } catch (const std::exception&) {
      // There is no thread to be had, or no memory for one, and other ranks and later saves wait for this
      // one.
      save_(turn);
    }
    return told;
  }

  // A rank that cannot stage tells the others, who would wait for it.
  Result<ShardData> stage(const ShardData& mine) {
    std::uint64_t bytes = 0;
    for (const TensorSource& tensor : mine.tensors) bytes += tensor.data.size();
    if (bytes > options_.staging_bytes_max)
      return failure(
          Errc::too_large,
          fmt::format(
              "the state has {} bytes, and at most {} are staged; save it in the foreground, or allow "
              "more: AsyncOptions::staging_bytes_max, in Python Checkpoints(..., staging_bytes=...)",
              bytes, options_.staging_bytes_max));
    if (bytes > capacity_) {
      memory_.reset();
      capacity_ = 0;
      try {
        memory_ = allocate_aligned(bytes);
      } catch (const std::bad_alloc&) {
        return failure(Errc::exhausted, fmt::format("there is no memory to stage {} bytes in", bytes));
      }
      capacity_ = bytes;
    }
    ShardData staged;
    staged.objects = mine.objects;
    std::byte* at = memory_.get();
    for (const TensorSource& tensor : mine.tensors) {
      if (!tensor.data.empty()) std::memcpy(at, tensor.data.data(), tensor.data.size());
      staged.tensors.push_back({tensor.info, {at, tensor.data.size()}});
      at += tensor.data.size();
    }
    return staged;
  }

  // What it threw would end the process, or leave the ticket and later saves without an end of this one. If
  // memory runs out where the coordinator does not expect it, the other ranks wait until the deadline.
  void run(const std::string& prefix, Result<ShardData> staged, SaveOptions& options,
           Ticket::State& state) noexcept {
    const std::stop_callback both(options.stop, [&] { state.stop.request_stop(); });
    options.stop = state.stop.get_token();
    auto result = with_memory("save", [&] {
      return CheckpointCoordinator(*stream_, storage_)
          .coordinate_save(prefix, [&] { return std::move(staged); }, options);
    });
    const std::lock_guard lock(state.mutex);
    state.result = std::move(result);
    state.done.notify_all();
  }

  const std::unique_ptr<Collective> stream_;
  const std::shared_ptr<Turns> turns_;  // with the savers to other storages, which have the same stream
  Storage& storage_;
  const AsyncOptions options_;
  AlignedMemory memory_;
  std::uint64_t capacity_ = 0;
  std::shared_ptr<Ticket::State> last_;
  std::optional<Error> unheard_;                     // of a save before the last one
  std::move_only_function<void(Turns::Turn)> save_;  // the last one, of the thread
  std::jthread thread_;
};

Result<std::unique_ptr<AsyncSaver>> AsyncSaver::create(Collective& collective, Storage& storage,
                                                       const AsyncOptions& options) {
  auto stream = collective.stream("async save");
  if (!stream) return std::unexpected(stream.error());
  return std::unique_ptr<AsyncSaver>(new AsyncSaver(
      std::make_unique<Worker>(*std::move(stream), collective.background_turns(), storage, options)));
}

AsyncSaver::AsyncSaver(std::unique_ptr<Worker> worker) : worker_(std::move(worker)) {}
AsyncSaver::~AsyncSaver() = default;

Result<Ticket> AsyncSaver::save(const std::string& prefix, const ShardData& mine,
                                const SaveOptions& options) {
  return with_memory("save", [&] { return worker_->save(prefix, mine, options); });
}

Result<Ticket> AsyncSaver::refuse(const std::string& prefix, const Error& why, const SaveOptions& options) {
  return with_memory("save", [&] { return worker_->refuse(prefix, why, options); });
}

Status AsyncSaver::close() { return worker_->finish_last(); }

void AsyncSaver::tell_later(const Error& unheard) { worker_->tell_later(unheard); }

bool AsyncSaver::let_memory_go() { return worker_->let_memory_go(); }

}  // namespace baton::checkpoint
