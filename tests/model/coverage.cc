#include <algorithm>
#include <concepts>

#include "tests/model/random_requests.h"

namespace baton::model {

using namespace core;

namespace {

constexpr const char* kRequests[] = {
    "SubmitTask", "LeaseTask",   "ExtendLease", "ExtendLeases", "CompleteTask", "FailTask", "ReleaseTask",
    "CancelTask", "RequeueTask", "PauseQueue",  "ResumeQueue",  "PurgeQueue",   "MoveBlob"};
static_assert(std::is_same_v<std::variant_alternative_t<std::size(kRequests), Request>, ProcessWork>,
              "the model knows all requests but those about streams");
constexpr const char* kRelations[] = {"current", "lapsed",    "expired", "finished", "released",
                                      "dead",    "forgotten", "others",  "invented", "none"};
constexpr const char* kFounds[] = {"waiting",   "delayed", "doomed", "leased",
                                   "completed", "failed",  "dead",   "gone"};

Found found(const ModelTask* task, Instant now) {
  if (task == nullptr) return Found::gone;
  switch (task->state) {
    case TaskState::waiting:
      if (task->is_doomed()) return Found::doomed;
      return task->since > now ? Found::delayed : Found::waiting;
    case TaskState::leased: return Found::leased;
    case TaskState::completed: return Found::completed;
    case TaskState::failed: return Found::failed;
    case TaskState::dead: return Found::dead;
  }
  return Found::gone;
}

Relation relation(const ModelTask* task, const LeaseId& lease, const std::vector<GrantedOnce>& grants,
                  Instant now) {
  if (lease == LeaseId{}) return Relation::none;
  const auto granted = std::ranges::find(grants, lease, &GrantedOnce::lease);
  if (granted == grants.end()) return Relation::invented;
  if (task == nullptr || granted->task != task->id) return Relation::others;
  if (task->hold && task->hold->lease == lease.lsn)
    return now < task->hold->expiry ? Relation::current : Relation::lapsed;
  for (const Past& past : task->pasts) {
    if (past.lease != lease.lsn) continue;
    if (past.how == Ended::expired) return Relation::expired;
    if (past.how == Ended::released) return Relation::released;
    return past.how == Ended::dead ? Relation::dead : Relation::finished;
  }
  return Relation::forgotten;
}

bool can_occur(std::size_t request, Found found, Relation relation) {
  const std::string_view name = kRequests[request];
  const bool speaks = name == "ExtendLease" || name == "ExtendLeases" || name == "CompleteTask" ||
                      name == "FailTask" || name == "ReleaseTask";
  const bool names_a_task = name == "CancelTask" || name == "RequeueTask";
  if (!speaks && !(names_a_task && relation == Relation::none)) return false;
  // What is due for the one task a request names is recorded before it is decided.
  const bool due_is_left = name == "ExtendLeases";
  if (!due_is_left && (found == Found::doomed || relation == Relation::lapsed)) return false;
  switch (relation) {
    case Relation::current:
    case Relation::lapsed: return found == Found::leased;
    case Relation::dead: return found == Found::dead;
    case Relation::others:
    case Relation::invented:
    case Relation::none: return true;
    default: return found != Found::gone;
  }
}

}  // namespace

void Coverage::count(const Request& request, const ReferenceModel& model,
                     const std::vector<GrantedOnce>& grants, Instant now) {
  const auto add = [&](const ModelTask* task, const LeaseId& lease) {
    ++cells_[{request.index(), std::size_t(found(task, now)),
              std::size_t(relation(task, lease, grants, now))}];
  };
  std::visit(
      [&]<class Asked>(const Asked& asked) {
        if constexpr (std::same_as<Asked, ExtendLeases>) {
          for (const ExtendLease& item : asked.items) add(model.find(asked.ns, item.task), item.lease);
        } else if constexpr (requires { asked.lease, asked.task.key; }) {
          add(model.find(asked.ns, asked.task), asked.lease);
        } else if constexpr (requires { asked.task.key; }) {
          add(model.find(asked.ns, asked.task), {});
        }
      },
      request);
}

std::vector<std::string> Coverage::missing() const {
  std::vector<std::string> cells;
  for (std::size_t request = 0; request < std::size(kRequests); ++request) {
    for (std::size_t found = 0; found < std::size(kFounds); ++found) {
      for (std::size_t relation = 0; relation < std::size(kRelations); ++relation) {
        if (!can_occur(request, Found(found), Relation(relation)) ||
            cells_.contains({request, found, relation}))
          continue;
        cells.push_back(std::string(kRequests[request]) + " of a " + kFounds[found] +
                        " task under a lease: " + kRelations[relation]);
      }
    }
  }
  return cells;
}

}  // namespace baton::model
