#include "server/event_stream.h"

namespace baton::server {
namespace {

constexpr Parameter kParameters[] = {
    {"queue", Kind::text, Place::option, "Of this queue only"},
    {"task", Kind::text, Place::option, "Of this task only: its id, or key: and its key"}};

}  // namespace

std::span<const Parameter> event_parameters() { return kParameters; }

void EventStream::happened(std::string_view text) {
  if (over_) return;
  over_ = output_.size() + text.size() > kUnreadBytesMax;
  output_ += over_ ? "event: slow\ndata: {\"error\":\"more than 1 MiB was not read in time\"}\n\n" : text;
  changed_();
}

}  // namespace baton::server
