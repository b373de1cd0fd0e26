// All connections: which of them have something to read, and which something to write. What is ready is only
// noted; it is read and written when the loop says so, everything that came together at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "server/connection.h"
#include "server/poller.h"

namespace baton::server {

class Connections {
 public:
  using Id = std::uint64_t;

  explicit Connections(Poller& poller) : poller_(poller) {}
  ~Connections() { clear(); }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  std::size_t size() const { return open_.size(); }
  Id next_id() const { return last_id_ + 1; }  // that the next one gets
  void add(std::unique_ptr<Connection> connection);
  void clear();

  // Its output or its appetite may have changed.
  void touch(Id id);
  bool has_readable() const { return !readable_.empty(); }
  // Until there is enough for now: the others come first next time. `came` is called before the bytes that
  // came with one read are looked at.
  void read_ready(const std::function<void(std::size_t)>& came, const std::function<bool()>& is_enough);
  // Likewise until there is enough for now, and at least one.
  void write_touched(Instant now, const std::function<bool()>& is_enough);
  bool has_touched() const { return !touched_.empty(); }
  // Once one of those that are held back has been so for too long, who has most goes first, of those that
  // have as much who has waited longest, and nobody once there is room; then the others have their time
  // again. All give back what room they do not need any more.
  void close_stuck(Instant now, Duration max);
  // It was us who stood still: nobody is blamed for what he could not do meanwhile.
  void begin_anew(Instant now);
  // There may be room again for more of what came in part.
  void look_for_readable();
  void access_changed();
  bool is_anyone_slow() const;  // a reply is not yet wholly sent

 private:
  struct Entry {
    std::unique_ptr<Connection> connection;
    bool may_read = false;  // there was something to read, and not all of it was read
    bool may_write = true;  // the socket took all it was given
    bool readable = false;  // is in readable_
    bool touched = false;   // is in touched_
  };

  Entry* find(Id id);
  void became_ready(Id id, Ready ready);
  void want_read(Id id, Entry& entry);
  void write(Id id, Instant now);
  void give_up(Id id, Instant now);
  void close(Id id);

  Poller& poller_;
  Id last_id_ = 0;
  std::unordered_map<Id, Entry> open_;
  std::vector<Id> readable_;
  std::vector<Id> touched_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{64} << 10);
};

}  // namespace baton::server
