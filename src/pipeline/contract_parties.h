// What the checks of the contract are made of: the parties to a run, and statements that have to hold. For
// contract_*.cc alone.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/contract.h"

namespace baton::pipeline::contract {

using Party = std::unique_ptr<DistributedCoordinator>;

inline std::unexpected<Error> broken(std::string what) { return failure(Errc::wrong_state, std::move(what)); }

// Every check is a list of statements that have to hold.
#define HOLDS(condition, what)             \
  do {                                     \
    if (!(condition)) return broken(what); \
  } while (false)
#define DONE(call)                                                                                  \
  do {                                                                                              \
    if (auto call_done = (call); !call_done) return broken(#call ": " + call_done.error().message); \
  } while (false)

// Whether a call was answered, and so.
template <class T>
bool is(const Result<T>& answer, const T& expected) {
  return answer && *answer == expected;
}

// A token that is triggered after a while, so that no check hangs.
class Deadline {
 public:
  explicit Deadline(Duration after);
  ~Deadline() { thread_.request_stop(); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread thread_;
};

ModuleAssignment assignment(const std::string& module, std::vector<std::string> capabilities = {});
WorkerRegistration worker(std::int32_t index, std::vector<std::string> capabilities = {},
                          std::string session = {});
RunOpening opening(std::string session = "master");
SerializedModuleResult result_of(const Assigned& assigned, std::int32_t index,
                                 std::string value = "\"done\"");

// Asks until there is an assignment or the run is closed, as the framework does.
Result<Dequeued> take(DistributedCoordinator& party, const WorkerRegistration& self,
                      const std::stop_token& stop);
Result<Assigned> take_assignment(DistributedCoordinator& party, const WorkerRegistration& self,
                                 Duration at_most);
// For what must not come: as long as a lease may last, at least.
bool gets_nothing(Subject& subject, DistributedCoordinator& party, const WorkerRegistration& self);

// A master and two workers that are known.
struct Cast {
  Party master, first, second;
  WorkerRegistration one = worker(1), two = worker(2);
};
Result<Cast> cast(Subject& subject);
#define CAST(all)                                             \
  auto all##_made = cast(subject);                            \
  if (!all##_made) return broken(all##_made.error().message); \
  Cast& all = *all##_made

}  // namespace baton::pipeline::contract
