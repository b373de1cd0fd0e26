// Why is this message not being handled? Goes through all that can keep it: nobody is at work, it is offered
// to somebody else, another message is in its way, somebody holds it, it is not to be tried yet; or it is not
// here at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/limits.h"
#include "core/stream/stream_query.h"

namespace baton::core {

// What a failure said lies in the log, so whoever asks puts it in its place.
struct WhyAnswer {
  std::string_view question;
  std::string answer;
  BlobRef said = {};  // to be put behind it
  std::string rest = {};
};

// In every lane of every service of the namespace that knows of it.
std::vector<WhyAnswer> why(const State& state, const Presence& presence, const StreamLook& look,
                           const Rules& rules, stream::MessageId message);

}  // namespace baton::core
