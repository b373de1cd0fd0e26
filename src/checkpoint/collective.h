// Ranks that meet: what the processes of a training job need of each other, as an interface. Those that come
// with baton join threads of one process (in_process_collective.h) and processes at a coordinator
// (server_collective.h); whoever has another way implements `meet` and the few questions beside it.
//
//   rank 0   barrier "ready" ----.
//   rank 1   barrier "ready" -----+--> everybody goes on, or everybody is told the same error
//   rank 2   barrier "ready" ----'
//
// A rank's first call is its operation 0, its next one operation 1, and so on: the n-th calls of all ranks
// belong together and must be the same operation by name, kind and root. So a call that was left out or
// misplaced is noticed at once, and no barrier of one place in the program can pair with that of another.
//
// An operation ends once, the same way for everybody: with what was contributed, or with one error, which
// whoever comes later hears too. After an error all ranks are at the next operation, together.
//
//   DEADLINE_EXCEEDED  somebody did not come: every one of them is named, and whether it is dead, slow or
//                      elsewhere. The first rank whose time is up ends the operation for all.
//   CONFLICT           ranks are at different operations: who is where
//   UNAVAILABLE        a rank is gone, or the coordinator cannot be reached
//   LEASE_LOST         this rank is of an older generation, or another process has taken its place
//   CLOSED             a rank was stopped while it waited, or has left: which one
//   TOO_LARGE          a contribution is over its limit, or all of them together are
//   CORRUPT            what the coordinator answered is no end of this operation
//   any other          what a rank said in place of a contribution, with its number before it if it is not
//                      the only one
//
// One thread at a time uses a Collective. Threads that save in the background have a stream of their own,
// whose operations are counted apart; they use it in turn, in the order in which their saves were begun.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "group/meeting.h"
#include "group/operation.h"

namespace baton::checkpoint {

class Turns;

using group::Operation;
using group::OperationKind;
using group::Rank;

inline constexpr std::size_t kContributionBytesMax = 3 << 20;  // what is larger goes to storage
using group::kHeardBytesMax;
inline constexpr std::size_t kOperationNameBytesMax = 200;
inline constexpr Duration kOperationDeadline = minutes(10);

// How a call is made: `collective.barrier({"epoch_end", seconds(30)})`.
struct Call {
  std::string name;
  Duration deadline = kOperationDeadline;  // from now on, for this call
  std::stop_token stop;                    // the others are told who was stopped
};

// What a rank brings: bytes, or the error that kept it from having some. An error ends the operation at once,
// for all ranks, without waiting for those who have not come yet.
using Contribution = Result<ByteView>;
Contribution brought(const Result<Bytes>& mine);  // which outlasts it

class Collective {
 public:
  Collective();
  virtual ~Collective() = default;

  virtual Rank rank() const = 0;
  virtual Rank world_size() const = 0;
  // Grows whenever the ranks are put together anew; a rank of an older one takes part in nothing.
  virtual std::uint64_t generation() const = 0;

  Status barrier(const Call& call);
  // What the root has, everywhere. The others' contribution is ignored, unless it is an error.
  Result<Bytes> broadcast(const Call& call, const Contribution& of_root, Rank root = 0);
  // By rank at the root; empty elsewhere.
  Result<std::vector<Bytes>> gather(const Call& call, const Contribution& mine, Rank root = 0);
  Result<std::vector<Bytes>> all_gather(const Call& call, const Contribution& mine);
  // Folded in the order of ranks on each rank by itself, so sums of floating-point numbers are the same
  // everywhere and every time.
  using Reducer = std::function<Bytes(ByteView left, ByteView right)>;
  Result<Bytes> all_reduce(const Call& call, const Contribution& mine, const Reducer& reducer);
  // The same operation, for whoever folds values rather than bytes: what there is to fold, by rank.
  Result<std::vector<Bytes>> all_to_reduce(const Call& call, const Contribution& mine);
  // Fine if it is fine with all; otherwise the first error that was brought.
  Status vote(const Call& call, const Status& mine);

  // Told to others who wait for this rank in vain: "epoch 3, evaluation". From any thread.
  virtual void tell_doing(std::string_view doing) { (void)doing; }
  // Likewise how far a save has got, behind that; nothing when it has written.
  virtual void tell_saving(std::string_view progress) { (void)progress; }

  // The same ranks again, with operations of their own; `name` is the same on all of them. One that was let
  // go and is made again goes on counting where it was.
  virtual Result<std::unique_ptr<Collective>> stream(const std::string& name) = 0;
  // Of the threads behind this one; shared with them, for they may outlast it.
  const std::shared_ptr<Turns>& background_turns() const { return background_turns_; }

 protected:
  // The one thing to implement: brings `mine`, waits, and returns what the kind says this rank gets (for
  // broadcast one element). Names and sizes have been checked.
  virtual Result<std::vector<Bytes>> meet(const Operation& operation, const Contribution& mine,
                                          const Call& call) = 0;

 private:
  Result<std::vector<Bytes>> checked_meet(const Operation& operation, const Contribution& mine,
                                          const Call& call);

  const std::shared_ptr<Turns> background_turns_;
};

}  // namespace baton::checkpoint
