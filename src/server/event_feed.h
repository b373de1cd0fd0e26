// What happens, as it is told to those who watch: entry by entry in the order of the log, each only when it
// is durable. Nothing is kept for later: who was not there has missed it.
//
//   recorded(event) -> [ described once, waits for its lsn ] -> tell(durable) -> EventWatcher::happened()
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "core/apply.h"
#include "core/event.h"
#include "core/state.h"

namespace baton::server {

// What of it somebody wants to see.
struct EventFilter {
  std::string ns;
  std::string queue;                 // empty: all
  std::optional<core::TaskId> task;  // none: all
};

// Who watches. The text is a server-sent event, ready to be sent.
class EventWatcher {
 public:
  virtual void happened(std::string_view text) = 0;

 protected:
  ~EventWatcher() = default;
};

class EventFeed {
 public:
  explicit EventFeed(const core::State& state) : state_(state) {}

  static constexpr std::size_t kWatchersMax = 256;
  static constexpr Duration kQuietMax = seconds(15);  // then a sign of life is sent

  // Begins with an event that says from where on he sees everything; with `seen`, the last he has seen, also
  // whether he has missed something. False if too many watch already.
  bool watch(EventWatcher& who, EventFilter filter, std::optional<core::Lsn> seen, Instant now);
  void forget(EventWatcher& who) { watchers_.erase(&who); }

  void recorded(const core::Event& event, const core::Stamp& stamp);  // and applied
  void tell(core::Lsn durable, Instant now);

 private:
  struct Told {
    core::Lsn lsn = 0;
    std::string ns;
    std::string queue;
    core::TaskId task;
    std::string text;
  };
  struct Watcher {
    EventFilter filter;
    core::Lsn from = 0;  // sees what comes behind this
    std::optional<core::Lsn> seen;
    bool begun = false;  // has been told from where on
    Instant last_told;
  };

  void add(const core::Event& event, const core::Stamp& stamp, core::Lsn task);
  static bool wants(const Watcher& watcher, const Told& told);

  const core::State& state_;
  std::map<EventWatcher*, Watcher> watchers_;
  std::deque<Told> waiting_;  // for their lsn to be durable
};

}  // namespace baton::server
