// One call of an instance while it is decided, step by step in the order in which its parts take effect.
#pragma once

#include <map>
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
  // Ids that a list has named already, and what was said of them.
  using Named = std::map<stream::MessageId, stream::Verdict>;

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

  Draft draft_;
  Results results_;
  WorkBatchApplied entry_;
  WorkProcessed reply_;
  std::set<stream::MessageId> events_;  // appended by this call
  std::map<std::pair<stream::Lane, stream::StreamId>, Number> opened_;
  std::uint64_t fresh_ = 0;  // messages that were not stored before
  Number loose_ = 0;         // streams without an id that this call makes
};

}  // namespace baton::core::streams
