#include "server/connections.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

namespace baton::server {

void Connections::add(std::unique_ptr<Connection> connection) {
  const Id id = ++last_id_;
  poller_.watch(connection->socket(), Poller::For::reading_and_writing,
                [this, id](Ready ready) { became_ready(id, ready); });
  open_.emplace(id, Entry{.connection = std::move(connection)});
}

void Connections::clear() {
  while (!open_.empty()) close(open_.begin()->first);
}

void Connections::close(Id id) {
  poller_.forget(find(id)->connection->socket());
  open_.erase(id);
}

Connections::Entry* Connections::find(Id id) {
  const auto found = open_.find(id);
  return found == open_.end() ? nullptr : &found->second;
}

void Connections::became_ready(Id id, Ready ready) {
  Entry* const entry = find(id);
  if (entry == nullptr) return;
  if (ready.hung_up) entry->connection->hung_up();
  if (ready.to_read) {
    entry->may_read = true;
    want_read(id, *entry);
  }
  if (ready.to_write && !std::exchange(entry->may_write, true)) touch(id);
}

void Connections::want_read(Id id, Entry& entry) {
  if (!std::exchange(entry.readable, true)) readable_.push_back(id);
}

void Connections::touch(Id id) {
  Entry* const entry = find(id);
  if (entry != nullptr && !std::exchange(entry->touched, true)) touched_.push_back(id);
}

void Connections::read_ready(const std::function<void(std::size_t)>& came,
                             const std::function<bool()>& is_enough) {
  for (const Id id : std::exchange(readable_, {})) {
    if (is_enough()) {
      readable_.push_back(id);
      continue;
    }
    Entry* const entry = find(id);
    if (entry == nullptr) continue;
    entry->readable = false;
    entry->may_read = entry->connection->read(buffer_, came);
    touch(id);
  }
}

void Connections::write_touched(Instant now, const std::function<bool()>& is_enough) {
  const std::vector<Id> touched = std::exchange(touched_, {});
  auto next = touched.begin();
  while (next != touched.end()) {
    write(*next++, now);
    if (is_enough()) break;
  }
  touched_.insert(touched_.begin(), next, touched.end());
}

void Connections::write(Id id, Instant now) {
  Entry* const entry = find(id);
  if (entry == nullptr) return;
  entry->touched = false;
  if (entry->may_write) {
    if (!entry->connection->write(now)) touch(id);
    entry->may_write = !entry->connection->has_output();
  }
  entry->connection->count_unsent();
  if (entry->connection->is_over()) return close(id);
  if (entry->may_read && entry->connection->wants_to_read()) want_read(id, *entry);
}

void Connections::give_up(Id id, Instant now) {
  find(id)->connection->give_up(now);
  close(id);
}

void Connections::close_stuck(Instant now, Duration max) {
  std::vector<Id> stuck;
  std::vector<std::tuple<std::size_t, Duration, Id>> held_back;
  bool is_room_due = false;
  for (const auto& [id, entry] : open_) {
    entry.connection->give_back_room();
    const bool is_stuck = entry.connection->is_stuck(now, max);
    if (entry.connection->is_held_back()) {
      held_back.emplace_back(entry.connection->half_bytes(), now - entry.connection->got_on(), id);
      is_room_due |= is_stuck;
    } else if (is_stuck) {
      stuck.push_back(id);
    }
  }
  for (const Id id : stuck) give_up(id, now);
  std::ranges::sort(held_back, std::greater());
  for (const auto& [bytes, waited, id] : held_back) {
    Connection& connection = *find(id)->connection;
    if (!connection.is_held_back()) {
      connection.begin_anew(now);  // nothing was read of it meanwhile
    } else if (is_room_due) {
      give_up(id, now);
    }
  }
}

void Connections::begin_anew(Instant now) {
  for (auto& [id, entry] : open_) entry.connection->begin_anew(now);
}

void Connections::look_for_readable() {
  for (auto& [id, entry] : open_) {
    if (entry.may_read && entry.connection->wants_to_read()) want_read(id, entry);
  }
}

void Connections::access_changed() {
  for (auto& [id, entry] : open_) {
    entry.connection->access_changed();
    touch(id);
  }
}

bool Connections::is_anyone_slow() const {
  return std::ranges::any_of(open_, [](const auto& entry) { return entry.second.connection->has_output(); });
}

}  // namespace baton::server
