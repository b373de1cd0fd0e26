// Chooses streams for an instance that asks for work: whole ones, the one that has waited longest first, and
// never more than the call can carry. A stream is offered to the instance with its rank, after a while to
// all.
#pragma once

#include <set>
#include <vector>

#include "core/decision.h"
#include "core/stream/draft.h"
#include "core/stream/work_event.h"
#include "core/stream/work_request.h"

namespace baton::core::streams {

struct Claimant {
  Slot service = 0;   // 0: it is new, and has only what this call stores
  Slot instance = 0;  // likewise
  stream::Standing standing;
  const Moment& at;
};

class Claim {
 public:
  // `room` is what the entry still has, in bytes.
  Claim(Draft& draft, const Claimant& claimant, const stream::ClaimRequest& request, std::size_t room,
        WorkBatchApplied& entry, std::vector<GivenMessage>& work);
  // What the caller puts into its outbox, it most likely can publish at once: such streams come first, and
  // whatever their rank.
  void prefer(const std::set<Number>& streams) { preferred_ = streams; }
  void make();

 private:
  struct Picked {
    Number number = 0;
    Slot slot = 0;  // 0: it does not exist yet
    friend auto operator<=>(const Picked&, const Picked&) = default;
  };
  // What a claim in one lane has come to, of what it may.
  struct Taken {
    std::int64_t messages = 0;
    std::int64_t bytes = 0;

    // The first message is given however large it is.
    bool has_room(const stream::ClaimLimits& limits, std::int64_t more) const {
      return messages == 0 || (messages < limits.messages && bytes + more <= limits.bytes);
    }
  };

  void claim_streams(stream::Lane lane, Taken& taken);
  void claim_loose(stream::Lane lane, Taken& taken);
  std::vector<Picked> pick(stream::Lane lane);
  std::vector<Picked> preferred(stream::Lane lane) const;
  bool is_offered(const Stream& of) const;
  bool may_hold_partition(std::int32_t partition, std::set<std::int32_t>& held) const;
  // Calls `visit(stream, slot)` for what may be handed out, in order, until it returns false.
  void visit_ready(stream::Lane lane, bool loose, auto&& visit);
  bool bury_poison(DraftStream& of);  // false: there was none
  bool take(DraftStream& of, std::int32_t count_max, Taken& taken);
  GivenMessage given(const Stream& of, const Message& message) const;
  DraftStream& drafted(Number number, Slot slot);

  Draft& draft_;
  const Claimant& claimant_;
  const stream::ClaimRequest& request_;
  std::size_t streams_left_;  // that fit the entry, whatever becomes of them
  WorkBatchApplied& entry_;
  std::vector<GivenMessage>& work_;
  std::set<Number> preferred_;
  std::set<std::int32_t> partitions_;  // of streams it holds, if that matters
};

}  // namespace baton::core::streams
