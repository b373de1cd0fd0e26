#include "pipeline/fleet.h"

#include <algorithm>

#include "pipeline/reservation.h"

namespace baton::pipeline {
namespace {

bool is_alive(const RegisteredWorker& worker) {
  return worker.status != WorkerStatus::disconnected && worker.status != WorkerStatus::timed_out;
}

bool can_run(const RegisteredWorker& worker, const Lane& lane) {
  return is_alive(worker) && covers(worker.registration.capabilities, lane.capabilities);
}

// A module that keeps a processor busy needs one for itself.
std::size_t places_at(const WorkerRegistration& worker, const Lane& lane) {
  return lane.hint == Hint::cpu ? std::min(worker.slots, worker.processors) : worker.slots;
}

std::string arrival(const RegisteredWorker& worker) {
  const WorkerRegistration& registration = worker.registration;
  const std::vector<std::string> named = without_unreserved(registration.capabilities);
  return name_of(worker) + (registration.name.empty() ? "" : " (" + registration.name + ")") +
         " is there: " + (named.empty() ? "no capabilities" : joined(named)) + "; " +
         std::to_string(registration.slots) + (registration.slots == 1 ? " place" : " places") +
         (is_reserved(registration.capabilities) ? ", reserved" : "");
}

std::string departure(const RegisteredWorker& worker) {
  if (worker.status == WorkerStatus::disconnected) return name_of(worker) + " has left";
  return name_of(worker) + " was lost: it has not been heard of for " +
         std::to_string(worker.silent_for.ms / 1000) + " s" +
         (worker.current_modules.empty() ? "" : ", and had " + joined(worker.current_modules));
}

}  // namespace

std::string name_of(const RegisteredWorker& worker) {
  return "worker " + std::to_string(worker.registration.index);
}

std::vector<std::string> Fleet::update(std::vector<RegisteredWorker> workers, Duration now_at) {
  std::vector<std::string> news;
  for (const RegisteredWorker& now : workers) {
    const auto before = std::ranges::find_if(workers_, [&](const RegisteredWorker& one) {
      return one.registration.session == now.registration.session;
    });
    const bool was_alive = before != workers_.end() && is_alive(*before);
    if (is_alive(now) && !was_alive) news.push_back(arrival(now));
    if (!is_alive(now) && was_alive) news.push_back(departure(now));
  }
  workers_ = std::move(workers);
  places_by_lane_.clear();
  places_ = {};
  for (const RegisteredWorker& worker : workers_) {
    if (!is_alive(worker)) continue;
    places_.add(worker.registration, worker.registration.slots);
    attendance_.try_emplace(worker.registration.index, Attendance{now_at, now_at}).first->second.last =
        now_at;
  }
  return news;
}

std::size_t Fleet::alive() const {
  return static_cast<std::size_t>(std::ranges::count_if(workers_, is_alive));
}

Duration Fleet::attendance(std::int32_t index) const {
  const auto known = attendance_.find(index);
  return known == attendance_.end() ? Duration{} : known->second.last - known->second.first;
}

void Fleet::Places::add(const WorkerRegistration& worker, std::size_t places) {
  all += places;
  if (!is_reserved(worker.capabilities)) unreserved += places;
}

const Fleet::Places& Fleet::known(const Lane& lane) const {
  const auto [known, is_new] = places_by_lane_.try_emplace(lane);
  if (!is_new) return known->second;
  for (const RegisteredWorker& worker : workers_) {
    if (can_run(worker, lane)) known->second.add(worker.registration, places_at(worker.registration, lane));
  }
  return known->second;
}

bool Fleet::has_room(const Lane& lane, std::size_t per_place) const {
  // What only some can do does not wait behind what all can do: those who can take it next.
  if (out_ >= places_.all * per_place && !is_scarce(lane)) return false;
  const auto out = out_by_lane_.find(lane);
  return (out == out_by_lane_.end() ? 0 : out->second) < places_for(lane) * per_place;
}

bool Fleet::has_time(const Lane& lane,
                     const std::function<const Lane*(const std::string& module)>& out) const {
  std::map<Lane, std::size_t> on_its_way;  // what may come to those who can run it
  for (const auto& [other, many] : out_by_lane_) {
    const bool may_come = std::ranges::any_of(workers_, [&](const RegisteredWorker& worker) {
      return can_run(worker, lane) && can_run(worker, other);
    });
    if (may_come) on_its_way[other] = many;
  }
  std::size_t free = 0;
  for (const RegisteredWorker& worker : workers_) {
    if (!is_alive(worker)) continue;
    std::size_t places = can_run(worker, lane) ? places_at(worker.registration, lane) : 0;
    for (const std::string& module : worker.current_modules) {
      const Lane* as = out(module);
      if (as == nullptr) continue;
      if (places > 0) --places;
      if (const auto one = on_its_way.find(*as); one != on_its_way.end() && one->second > 0) --one->second;
    }
    free += places;
  }
  for (const auto& [other, many] : on_its_way) free -= std::min(free, many);
  return free > 0;
}

std::string Fleet::closest(const Lane& lane) const {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> fewest, who;  // all that lack the same
  for (const RegisteredWorker& worker : workers_) {
    if (!is_alive(worker)) continue;
    std::vector<std::string> missing;
    std::ranges::set_difference(without_unreserved(lane.capabilities), worker.registration.capabilities,
                                std::back_inserter(missing));
    if (who.empty() || missing.size() < fewest.size()) fewest = missing, who.clear();
    if (missing == fewest) who.push_back(name_of(worker));
  }
  if (who.empty()) return {};
  const std::string what = joined(fewest);
  if (who.size() == 1) return who.front() + " lacks " + what;
  if (who.size() == alive()) return "every worker lacks " + what;
  return (who.size() > kNamed ? std::to_string(who.size()) + " workers" : joined(who)) + " lack " + what;
}

std::string Fleet::reserved_for_others(const Lane& lane) const {
  for (const RegisteredWorker& worker : workers_) {
    const std::vector<std::string>& offered = worker.registration.capabilities;
    if (is_alive(worker) && pipeline::covers(with_unreserved(offered), lane.capabilities))
      return name_of(worker) + " for " + joined(beyond_detected(offered));
  }
  return {};
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace baton::pipeline
