// What an instance has in hand: which messages wait their turn, which are being handled, what is to be
// reported, and which leases are to be renewed.
//
//   claim            next                     finish
//   ------> waiting ------> being handled ------------> to be reported, until the coordinator has heard it
//              |                   |
//              '-------------------'
//               the lease is lost: those waiting are dropped, whoever handles one is told
//
// No threads, no clock: one lock around it is the owner's business, and time is told.
#pragma once

#include <compare>
#include <deque>
#include <map>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/time.h"
#include "stream/handler.h"
#include "stream/work_coordinator.h"

namespace baton::stream {

struct InHandCounts {
  std::uint64_t handled = 0;
  std::uint64_t failed = 0;
  std::uint64_t lost = 0;        // the lease ended before the message was reported
  std::uint64_t given_back = 0;  // by a handler, or without having been begun
};

inline constexpr std::size_t kToldErrorBytesMax = std::size_t{8} << 10;  // what is beyond is not told
// Of the results in one request. As a log entry or a command they come to several times as much, of which
// either has 4 MiB at most.
inline constexpr std::size_t kToldBytesMax = std::size_t{512} << 10;

class InHand {
 public:
  explicit InHand(Duration lease) : lease_(lease) {}

  struct Begun {
    Work work;
    std::stop_token lost;
  };

  // Of a claim that was asked for at `asked`: the lease may have begun then.
  void take(std::vector<Work> work, Instant asked);
  // All that the coordinator says we hold: takes up what came with a claim we have not heard of.
  void take_unknown(std::vector<Work> held, Instant asked);
  // The next message whose stream nobody works on; it is being handled from now on. None is begun when its
  // lease has ended.
  std::optional<Begun> next(Instant now);
  void finish(const Work& work, const Outcome& outcome);

  // Adds to a request what there is to say: results, and renewals of leases of which a third is over.
  void speak(WorkBatchRequest& request, Instant now);
  // The coordinator's answer to it. Without one nothing changes, and the next request says it again.
  void hear(const WorkBatch& answer);
  // The coordinator refuses the request as it stands, and would again. From now on fewer results are said at
  // once; one that is refused by itself is said in plain words, and in the end not at all, so that its lease
  // ends. True: there is something else to say, at once.
  bool rephrase();

  // Leases that could not be renewed in time.
  void let_go_expired(Instant now);
  // The instance was evicted: everything is lost, and nobody wants to hear of it.
  void let_go_all();
  // What has not been begun goes back.
  void give_back_waiting();
  // Whoever is at work is asked to stop.
  void stop_handling();

  std::size_t messages() const { return messages_; }  // waiting or being handled
  std::size_t handling() const { return handling_; }
  bool has_results() const { return !results_.empty(); }
  bool has_next() const { return !ready_.empty(); }
  // When a lease is to be renewed next, and when one ends unless it is.
  std::optional<Instant> renewal() const { return first_end({lease_.ms / 3}); }
  std::optional<Instant> lease_end() const { return first_end(lease_); }
  const InHandCounts& counts() const { return counts_; }

 private:
  // A stream, or a message without one: ids of the two have nothing to do with each other.
  struct Key {
    Lane lane;
    bool is_loose;
    Uuid id;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Stream {
    Epoch claim;  // the last one
    std::deque<Work> waiting;
    std::optional<Held> handling;
    std::stop_source lost;
    Instant held_from;  // the lease lasts at least from here
  };
  struct Result {
    Lane lane;
    Held held;
    Outcome outcome;
    bool is_plain = false;  // said once more, without anything that could be refused

    std::size_t bytes() const;
  };
  struct Renewal {
    Key key;
    Held named;
  };
  // What the request under way says, for the answer to be understood.
  struct Said {
    std::size_t results = 0;
    std::vector<Renewal> renewals[2];  // by lane
    Instant at;
  };

  static Key key_of(const Work& work);
  // One message holds its whole stream; one that waits was claimed last.
  static Held holds(const Stream& stream) {
    return stream.waiting.empty() ? *stream.handling : stream.waiting.front().held();
  }
  bool has_ended(const Stream& stream, Instant now) const { return now >= stream.held_from + lease_; }
  std::optional<Instant> first_end(Duration after) const;  // when so much of some lease is over
  void give_back(Lane lane, Stream& stream);
  void let_go(Stream& stream);
  void forget_if_empty(std::map<Key, Stream>::iterator found);

  const Duration lease_;
  Epoch newest_;  // of all claims that were taken; later ones have larger epochs
  std::map<Key, Stream> streams_;
  std::deque<Key> ready_;  // streams with a message to be begun
  std::deque<Result> results_;
  std::size_t results_max_ = kItemsMax;  // in one request
  Said said_;
  std::size_t messages_ = 0;
  std::size_t handling_ = 0;
  InHandCounts counts_;
};

}  // namespace baton::stream
