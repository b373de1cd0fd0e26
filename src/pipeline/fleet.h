// The workers of a run, as the master knows them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pipeline/coordinator.h"
#include "pipeline/schedule.h"

namespace baton::pipeline {

class Fleet {
 public:
  // What changed, in words: "worker 2 (vm-4711) is there: linux, docker; 4 places".
  std::vector<std::string> update(std::vector<RegisteredWorker> workers, Duration now_at);

  const std::vector<RegisteredWorker>& workers() const { return workers_; }
  std::size_t alive() const;
  bool covers(const Lane& lane) const { return places_for(lane) > 0; }
  // Not everybody can run it, of those who are there for anything.
  bool is_scarce(const Lane& lane) const { return known(lane).unreserved < places_.unreserved; }
  Duration attendance(std::int32_t index) const;  // how long a worker has been there
  // Whether one more may be handed out, where every place may have so many.
  bool has_room(const Lane& lane, std::size_t per_place) const;
  // Whether those who can run it have a place free, even if all that is on its way and may come to them does.
  // Workers tell what they are at only now and then: `out` is under which lane that is still out, or null.
  bool has_time(const Lane& lane, const std::function<const Lane*(const std::string& module)>& out) const;
  void handed_out(const Lane& lane) { ++out_, ++out_by_lane_[lane]; }
  void came_back(const Lane& lane) { --out_, --out_by_lane_[lane]; }
  // Who comes closest: "worker 2 lacks gpu", "every worker lacks gpu". Nothing if there is nobody.
  std::string closest(const Lane& lane) const;
  // Who could run it and must not: "worker 2 for gpu". Nothing if there is nobody.
  std::string reserved_for_others(const Lane& lane) const;

 private:
  struct Places {
    std::size_t all = 0;
    std::size_t unreserved = 0;  // of them
    void add(const WorkerRegistration& worker, std::size_t places);
  };
  const Places& known(const Lane& lane) const;
  std::size_t places_for(const Lane& lane) const { return known(lane).all; }

  struct Attendance {
    Duration first, last;  // seen alive
  };

  std::vector<RegisteredWorker> workers_;
  std::map<std::int32_t, Attendance> attendance_;
  Places places_;
  std::size_t out_ = 0;
  std::map<Lane, std::size_t> out_by_lane_;
  mutable std::map<Lane, Places> places_by_lane_;  // as far as it was asked for
};

std::string name_of(const RegisteredWorker& worker);  // "worker 2"
// "gpu, linux"
std::string joined(const std::vector<std::string>& names);

}  // namespace baton::pipeline
