// What receptors and perspectives have done with events. No lease guards these: each report says enough by
// itself that repeating it changes nothing.
#pragma once

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/stream/streams.h"
#include "core/stream/work_event.h"
#include "core/stream/work_request.h"

namespace baton::core::streams {

class Results {
 public:
  Results(const Streams& all, WorkBatchApplied& entry) : all_(all), entry_(entry) {}

  Verdicts receptors(Slot space, const std::vector<stream::ReceptorResult>& results, bool failed);
  Verdicts perspectives(Slot space, const std::vector<stream::PerspectiveResult>& results, bool failed);

 private:
  struct Reached {
    std::uint32_t version = 0;
    Versions ahead;
    stream::PerspectiveStatus status = stream::PerspectiveStatus::none;
    std::string_view error;
  };
  struct Receptor {
    stream::ReceptorStatus status = stream::ReceptorStatus::none;
    std::int32_t attempts = 0;
  };
  stream::Verdict receptor(Slot space, const stream::ReceptorResult& result, stream::ReceptorStatus status);
  stream::Verdict perspective(Slot space, const stream::PerspectiveResult& result,
                              stream::PerspectiveStatus status);
  Reached& reached(Slot space, const stream::PerspectiveResult& result);
  void process(Slot space, const stream::PerspectiveResult& result, std::uint32_t goal, Reached& reached,
               CheckpointMoved& moved) const;

  const Streams& all_;
  WorkBatchApplied& entry_;
  std::map<std::pair<stream::MessageId, std::string_view>, Receptor> receptors_;
  std::map<std::pair<stream::StreamId, std::string_view>, Reached> reached_;
};

}  // namespace baton::core::streams
