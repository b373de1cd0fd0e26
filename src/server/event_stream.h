// GET /v1/events: what happens, as server-sent events, for as long as the reader keeps up.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>

#include "server/arguments.h"
#include "server/event_feed.h"

namespace baton::server {

inline constexpr std::string_view kEventsPath = "/v1/events";
std::span<const Parameter> event_parameters();

class EventStream final : public EventWatcher {
 public:
  static constexpr std::size_t kUnreadBytesMax = std::size_t{1} << 20;

  // `changed` is called when something was added to `output`.
  EventStream(EventFeed& feed, std::string& output, std::function<void()> changed)
      : feed_(feed), output_(output), changed_(std::move(changed)) {}
  ~EventStream() { feed_.forget(*this); }
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  void happened(std::string_view text) override;
  bool is_over() const { return over_; }  // the reader was too slow

 private:
  EventFeed& feed_;
  std::string& output_;
  const std::function<void()> changed_;
  bool over_ = false;
};

}  // namespace baton::server
