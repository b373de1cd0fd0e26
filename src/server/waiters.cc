#include "server/waiters.h"

#include <algorithm>

#include "core/names.h"

namespace baton::server {
namespace {

constexpr std::uint64_t kDueTogether =
    64;  // tasks that may have become eligible at one time; nobody counts them

}  // namespace

Waiters::Waiting& Waiters::add(Operation& operation, Instant deadline) {
  const Id id = ++last_;
  ids_[&operation] = id;
  by_time_.emplace(deadline, id);
  return waiting_[id] = {.operation = &operation, .deadline = deadline};
}

void Waiters::wait_for_task(Operation& operation, std::string_view ns, const std::vector<std::string>& queues,
                            Instant deadline, std::string_view capabilities) {
  Waiting& waiting = add(operation, deadline);
  waiting.capabilities = capabilities;
  for (const std::string& queue : queues) {
    const core::ScopedName name(ns, queue);
    auto line = lines_.find(std::string_view(name));
    if (line == lines_.end())
      line = lines_.emplace(std::string_view(name), Line{.ns = std::string(ns), .queue = queue}).first;
    if (line->second.ids.insert(last_).second) waiting.lines.push_back(line);
  }
}

void Waiters::wait_for_end(Operation& operation, core::Lsn task, Instant deadline) {
  add(operation, deadline).task = task;
  ends_.emplace(task, last_);
}

bool Waiters::forget(Operation& operation) {
  const auto found = ids_.find(&operation);
  if (found == ids_.end()) return false;
  std::vector<Woken> ignored;
  take(found->second, {}, ignored);
  return true;
}

void Waiters::task_came(std::string_view ns, std::string_view queue) {
  const core::ScopedName name(ns, queue);
  const auto line = lines_.find(std::string_view(name));
  if (line != lines_.end()) stir(line, 1);
}

void Waiters::task_comes_at(std::string_view ns, std::string_view queue, Instant at) {
  const core::ScopedName name(ns, queue);
  const auto line = lines_.find(std::string_view(name));
  if (line == lines_.end() || (line->second.put_off && *line->second.put_off <= at)) return;
  put_off(line, at);
}

void Waiters::stir(Lines::iterator line, std::uint64_t tasks) {
  line->second.came += tasks;
  line->second.try_up_to = last_;
  stirred_.insert(line->first);
}

void Waiters::task_came_to_all(std::string_view prefix) {
  for (auto& [name, line] : lines_) {
    if (!line.queue.starts_with(prefix)) continue;
    line.came = line.ids.size();
    line.try_up_to = last_;
    stirred_.insert(name);
  }
}

void Waiters::task_ended(core::Lsn task) {
  for (auto at = ends_.lower_bound({task, 0}); at != ends_.end() && at->first == task; ++at)
    ended_.push_back(at->second);
}

void Waiters::take(Id id, Instant now, std::vector<Woken>& woken) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  const Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  woken.push_back({waiting.operation, waiting.deadline <= now});
  by_time_.erase({waiting.deadline, id});
  ids_.erase(waiting.operation);
  if (waiting.task != 0) ends_.erase({waiting.task, id});
  for (const Lines::iterator line : waiting.lines) {
    line->second.ids.erase(id);
    if (!line->second.ids.empty()) continue;
    stirred_.erase(line->first);
    put_off(line, {});
    lines_.erase(line);
  }
}

std::vector<Waiters::Woken> Waiters::take(Instant now, const Look& look) {
  std::vector<Woken> woken;
  for (const Id id : std::exchange(ended_, {})) take(id, now, woken);
  while (!put_off_.empty() && put_off_.begin()->first <= now) {
    const auto line = lines_.find(put_off_.begin()->second);
    put_off(line, {});
    stir(line, kDueTogether);
  }
  for (const std::string& name : std::vector(stirred_.begin(), stirred_.end())) {
    const auto line = lines_.find(name);
    if (line == lines_.end()) continue;
    const core::Prospect prospect = look(line->second.ns, line->second.queue);
    const bool tried = *line->second.ids.begin() > line->second.try_up_to;
    // The next time, if somebody was woken: the line may be gone now.
    if (!tried && wake_in(line->second, prospect, now, woken)) continue;
    stirred_.erase(name);
    if (prospect.next) put_off(line, prospect.next);
  }
  while (!by_time_.empty() && by_time_.begin()->first <= now) take(by_time_.begin()->second, now, woken);
  return woken;
}

void Waiters::put_off(Lines::iterator line, std::optional<Instant> until) {
  if (line->second.put_off) put_off_.erase({*line->second.put_off, line->first});
  line->second.put_off = until;
  if (until) put_off_.emplace(*until, line->first);
}

// As many as tasks came, of those who can do one that is there. One who finds that none is for him lines up
// again behind the others, and while there is one the next has a try, until each who was in line when it came
// has had one.
bool Waiters::wake_in(Line& line, const core::Prospect& prospect, Instant now, std::vector<Woken>& woken) {
  std::vector<Id> next;
  const std::uint64_t most = std::max<std::uint64_t>(std::exchange(line.came, 0), 1);
  std::map<std::string_view, bool> is_ready_for;  // most can do the same
  for (const Id id : line.ids) {
    if (id > line.try_up_to || next.size() == most) break;
    const std::string_view capabilities = waiting_.at(id).capabilities;
    const auto [known, is_new] = is_ready_for.try_emplace(capabilities);
    if (is_new) known->second = prospect.is_ready_for(capabilities);
    if (known->second) next.push_back(id);
  }
  for (const Id id : next) take(id, now, woken);
  return !next.empty();
}

std::vector<Operation*> Waiters::take_all() {
  std::vector<Operation*> all;
  for (const auto& [operation, id] : ids_) all.push_back(operation);
  for (Operation* operation : all) forget(*operation);
  return all;
}

Instant Waiters::next() const {
  const Instant never{INT64_MAX};
  if (waiting_.empty()) return never;
  return std::min(by_time_.empty() ? never : by_time_.begin()->first,
                  put_off_.empty() ? never : put_off_.begin()->first);
}

}  // namespace baton::server
