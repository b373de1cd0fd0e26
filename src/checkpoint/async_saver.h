// Saving in the background: the training loop waits until its state has been copied, and goes on while the
// copy is written and committed.
//
//   save ──► staged (the state may change again) ──► committed, or failed
//              │
//        back here: a Ticket
//
// One save is under way at a time: the next one waits for it first, which is also what limits the memory.
// Savers of one Collective to several storages write one after the other, in the order of their calls, which
// is the same on all ranks. A save that failed is never silent: its error comes from the ticket, or else from
// the next save or from close.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "checkpoint/checkpoint_coordinator.h"
#include "checkpoint/collective.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

class Ticket {
 public:
  struct State;
  // Shared with the thread that saves.
  explicit Ticket(std::shared_ptr<State> state) : state_(std::move(state)) {}

  bool is_done() const;
  bool is_done_within(Duration at_most) const;  // whoever asks has not heard of its error
  bool is_committed() const;                    // done, and there is a checkpoint
  // DEADLINE_EXCEEDED: it is still under way.
  Result<SaveResult> wait(Duration at_most) const;
  // The save ends soon, with CLOSED on all ranks, unless it is committed already.
  void cancel() const;

 private:
  std::shared_ptr<State> state_;
};

struct AsyncOptions {
  std::uint64_t staging_bytes_max = std::uint64_t{8} << 30;  // a larger state is refused
};

class AsyncSaver {
 public:
  // Every rank makes one; both outlive it.
  static Result<std::unique_ptr<AsyncSaver>> create(Collective& collective, Storage& storage,
                                                    const AsyncOptions& options = {});
  // Waits for the save that is under way. If it fails and nobody was told, that is written to standard error.
  ~AsyncSaver();
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;

  // Called by every rank. Everything is captured before this returns. The error of an earlier save that
  // nobody here has heard of is returned in place of a new one, and told to the other ranks by this save. A
  // call that was stopped does not return it: that may reach nobody, and it comes from the next call.
  Result<Ticket> save(const std::string& prefix, const ShardData& mine, const SaveOptions& options);
  // In place of save, by a rank that has nothing to save: that is the error of its ticket, and of all ranks'.
  // The error of an earlier save that nobody here has heard of stays so: it comes from the next call.
  Result<Ticket> refuse(const std::string& prefix, const Error& why, const SaveOptions& options);
  // Waits; the error of the last save if nobody has heard of it.
  Status close();
  // What close has returned reached nobody: it comes from the next call.
  void tell_later(const Error& unheard);
  // Of the last copy, unless it is being saved; the next save takes some anew. Whether there is nothing left
  // to do or to tell: no save is under way, nor did one fail of which nobody has heard.
  bool let_memory_go();

 private:
  class Worker;
  explicit AsyncSaver(std::unique_ptr<Worker> worker);
  const std::unique_ptr<Worker> worker_;
};

}  // namespace baton::checkpoint
