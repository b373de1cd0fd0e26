// Random requests of all kinds, over few names, tasks and leases, so that they meet often; and a tally of
// what they met. The same seed gives the same requests.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "core/request.h"
#include "tests/model/reference_model.h"

namespace baton::model {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();  // splitmix64
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  template <class T>
  T among(std::initializer_list<T> items) {
    return items.begin()[below(items.size())];
  }

 private:
  std::uint64_t state_;
};

struct GrantedOnce {
  core::TaskId task;
  core::LeaseId lease;
};

class RandomRequests {
 public:
  explicit RandomRequests(std::uint64_t seed);

  core::Request next(const ReferenceModel& model);
  // What came of requests, to be spoken of in later ones.
  void submitted(core::TaskId task) { tasks_.push_back(task); }
  void granted(core::TaskId task, const core::LeaseId& lease) { grants_.push_back({task, lease}); }
  const std::vector<GrantedOnce>& grants() const { return grants_; }

  Random& random() { return random_; }
  std::uint64_t tasks_max() const { return tasks_max_; }
  Instant later(Instant now, const ReferenceModel& model);
  std::string ns();
  std::string queue();
  std::string worker();

 private:
  core::Request fresh(const ReferenceModel& model);
  core::SubmitTask submission();
  core::LeaseTask pull();
  core::ExtendLeases extensions(const ReferenceModel& model);
  core::MoveBlob move(const ReferenceModel& model);
  template <class Speech>
  Speech spoken(const ReferenceModel& model, Speech speech);
  core::TaskRef task();
  std::string key();
  core::Capabilities capabilities(std::uint64_t chance);
  core::Blob blob();
  Duration ttl();

  Random random_;
  // What sort of seed it is: some have few tasks with many leases each, some hurry, some dwell.
  std::uint64_t tasks_max_;
  std::uint64_t hurry_;
  bool long_lives_;  // tasks are leased over and over and seldom end
  std::vector<core::TaskId> tasks_;
  std::vector<GrantedOnce> grants_;
  std::vector<core::Request> recent_;
};

// What the lease a worker speaks under is to the task it speaks of, and how that task is found.
enum class Relation { current, lapsed, expired, finished, released, dead, forgotten, others, invented, none };
enum class Found { waiting, delayed, doomed, leased, completed, failed, dead, gone };

// How often each kind of request met each kind of task under each kind of lease.
class Coverage {
 public:
  void count(const core::Request& request, const ReferenceModel& model,
             const std::vector<GrantedOnce>& grants, Instant now);
  // The combinations that can occur but did not, in words.
  std::vector<std::string> missing() const;

 private:
  using Cell = std::array<std::size_t, 3>;  // request, found, relation
  std::map<Cell, std::uint64_t> cells_;
};

}  // namespace baton::model
