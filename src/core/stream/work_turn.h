// One call of an instance while it is decided, step by step in the order in which its parts take effect.
#pragma once

#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/decision.h"
#include "core/stream/draft.h"
#include "core/stream/presence.h"
#include "core/stream/results.h"
#include "core/stream/work_request.h"

namespace baton::core::streams {

class WorkTurn {
 public:
  WorkTurn(const Streams& all, const Presence& presence, const ProcessWork& request, const Moment& at);
  Decision decide();

 private:
  struct Judged {
    stream::Verdict verdict = stream::Verdict::unknown;
    Slot message = 0;
  };
  struct Named {
    explicit Named(std::pmr::memory_resource& memory) : verdicts(&memory) {}

    std::pmr::map<stream::MessageId, stream::Verdict> verdicts;  // on what a list has named already
    Slot last = 0;                                               // of its messages, the one found last
  };

  std::optional<Reject> identify();
  std::optional<Reject> beat(const stream::Instance& said);
  std::optional<Reject> refuse_size();
  std::optional<Reject> judge_new(stream::Lane lane);
  void store(stream::Lane lane);
  void complete(stream::Lane lane);
  void fail(stream::Lane lane);
  void renew(stream::Lane lane);

  Judged judge(stream::Lane lane, const stream::Held& held, Named& named) const;
  stream::Verdict judge(const stream::Held& held, Slot message) const;
  Slot find_held(stream::Lane lane, stream::MessageId id, Slot before) const;
  void report(Slot message, MessageReported reported);
  bool is_new(stream::Lane lane, const StoreMessage& message) const;
  Slot find_stream(stream::Lane lane, stream::StreamId id) const;
  DraftStream& stream_for(stream::Lane lane, const StoreMessage& message);
  void add(stream::Lane lane, const StoreMessage& message);
  std::set<Number> outbox_streams() const;
  stream::Standing standing(Duration stale) const;

  const Streams& all_;
  const Presence& presence_;
  const ProcessWork& request_;
  const Moment& at_;
  Slot space_ = 0;
  Slot service_ = 0;       // 0: the call brings it into being
  Slot instance_ = 0;      // likewise
  std::size_t bytes_ = 0;  // of the entry, at most

  // A call of hundreds of messages makes a little node for each, several times over, and all go with it.
  std::pmr::monotonic_buffer_resource memory_;
  Draft draft_;
  Results results_;
  WorkBatchApplied entry_;
  WorkProcessed reply_;
  std::pmr::set<stream::MessageId> events_{&memory_};  // appended by this call
  std::pmr::map<std::pair<stream::Lane, stream::StreamId>, Number> opened_{&memory_};
  std::uint64_t fresh_ = 0;  // messages that were not stored before
  Number loose_ = 0;         // streams without an id that this call makes
};

}  // namespace baton::core::streams
