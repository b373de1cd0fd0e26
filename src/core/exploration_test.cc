// Everything that can happen to two tasks and two workers within a few milliseconds: all requests in all
// states that can be reached, breadth first, each step compared with the reference model and held to the
// invariants.
//
// Two histories that differ only in when and at which lsn things happened lead to the same future, so states
// are told apart by what is left of their times and by the order of their places.
#include <cstdlib>
#include <deque>
#include <memory>
#include <unordered_set>

#include "core/testing.h"
#include "tests/model/reference_model.h"

namespace baton::core {
namespace {

using model::ModelTask;
using model::ReferenceModel;

// Entries are shared between all histories that begin with them.
struct History {
  std::shared_ptr<const History> before;
  Entry entry;
};

struct Node {
  std::shared_ptr<const History> history;
  ReferenceModel model;
  Instant now;
};

State state_of(const History* history) {
  std::vector<const Entry*> entries;
  for (; history != nullptr; history = history->before.get()) entries.push_back(&history->entry);
  State state;
  for (std::size_t i = entries.size(); i-- > 0;) {
    apply(state, *decode(static_cast<std::uint16_t>(entries[i]->type), entries[i]->body), entries[i]->stamp);
  }
  return state;
}

// All that the future depends on.
std::string situation(const Node& node) {
  std::string text;
  const auto put = [&](std::int64_t number) { text += std::to_string(number) + ' '; };
  const auto left = [&](Instant at) { put(std::max<std::int64_t>(0, (at - node.now).ms)); };
  std::vector<std::pair<Lsn, Lsn>> places;
  std::vector<std::tuple<Instant, Lsn, Lsn>> turns;
  Lsn number = 0;
  for (const auto& [lsn, task] : node.model.tasks()) {
    text += task.key + (task.retry_of == TaskId{} ? " " : "' ");
    put(static_cast<int>(task.state)), put(task.attempt), put(task.failures), put(static_cast<int>(task.why));
    if (task.state == TaskState::waiting) left(task.since);
    if (task.hold) {
      text += task.hold->worker;
      left(task.hold->expiry), left(task.hold->granted_at + task.max_hold);
    }
    for (const model::Past& past : task.pasts) {
      put(static_cast<int>(past.how)), put(past.told), put(past.lease != 0), put(past.note.length);
    }
    places.emplace_back(task.place, number);
    turns.emplace_back(task.since, task.place, number++);
    text += '|';
  }
  std::ranges::sort(places);
  std::ranges::sort(turns);
  for (const auto& [place, which] : places) put(static_cast<std::int64_t>(which));
  for (const auto& [since, place, which] : turns) put(static_cast<std::int64_t>(which));
  put(node.model.is_paused("n", "q"));
  return text;
}

std::vector<Request> all_requests(const ReferenceModel& model) {
  constexpr Duration kShort = milliseconds(2);
  SubmitTask first = a_task("a"), second = a_task("b");
  first.payload = second.payload = Blob();
  first.max_attempts = second.max_attempts = 2;
  first.retry = {.max_failures = 2, .base = milliseconds(1), .jitter_percent = 0};
  second.max_hold = milliseconds(3);
  second.priority = 1;
  SubmitTask conflicting = first;
  conflicting.priority = 5;
  std::vector<Request> requests = {first,
                                   second,
                                   conflicting,
                                   a_worker("w", kShort),
                                   a_worker("v", kShort),
                                   PauseQueue{"n", "q"},
                                   ResumeQueue{"n", "q"},
                                   PurgeQueue{.ns = "n", .queue = "q", .count_max = 1}};
  std::vector<std::pair<TaskId, LeaseId>> leases;
  for (const auto& [lsn, task] : model.tasks()) {
    const auto add = [&](Lsn lease, Epoch epoch) {
      leases.emplace_back(task.id, LeaseId{epoch, lease, lease_nonce(kKey, epoch, lease, lsn)});
    };
    if (task.hold) add(task.hold->lease, task.hold->epoch);
    for (const model::Past& past : task.pasts) {
      if (past.lease != 0) add(past.lease, past.epoch);
    }
    requests.push_back(CancelTask{.ns = "n", .task = task.id});
    requests.push_back(RequeueTask{.ns = "n", .task = task.id, .key = "c"});
  }
  ExtendLeases many{.ns = "n"};
  for (const auto& [lsn, task] : model.tasks()) {
    for (const auto& [owner, lease] : leases) {
      for (const bool invented : {false, true}) {
        if (invented && owner != task.id) continue;
        Granted held{.task = task.id, .lease = lease};
        held.lease.nonce ^= invented;
        FailTask final = fail(held, "f");
        final.final = true;
        requests.insert(requests.end(),
                        {extend(held, kShort), complete(held), fail(held), final, release(held)});
      }
      if (owner == task.id) many.items.push_back(extend({.task = owner, .lease = lease}, milliseconds(3)));
    }
  }
  requests.push_back(many);
  return requests;
}

// T67, T68, T69, T70 and I7, I8, I10, I16, straight from the state.
void check_invariants(const State& state) {
  std::unordered_set<Slot> leases;
  std::unordered_set<std::string> keys;
  for (Slot slot = state.ids.first_from(0); slot != 0;
       slot = state.ids.first_from(state.tasks[slot].lsn + 1)) {
    const Task& task = state.tasks[slot];
    ASSERT_EQ(task.state == TaskState::leased, task.lease != 0);
    if (task.lease != 0) {
      ASSERT_TRUE(leases.insert(task.lease).second);
      ASSERT_EQ(state.leases[task.lease].task, task.lsn);
      ASSERT_EQ(state.leases[task.lease].task_slot, slot);
    }
    unsigned endings = 0;
    for (Slot ending = task.endings; ending != 0; ending = state.endings[ending].next) {
      endings += state.endings[ending].lease != 0;
      ASSERT_EQ(state.endings[ending].task, task.lsn);
    }
    ASSERT_EQ(task.attempt, endings + (task.lease != 0 ? 1 : 0));  // few enough that all are remembered
    ASSERT_LE(task.failures, task.attempt);
    if (task.options != 0 && !state.options[task.options].key.empty()) {
      ASSERT_TRUE(keys.insert(state.options[task.options].key).second);
    }
  }
  ASSERT_EQ(leases.size(), state.leases.used());
}

// What no step may do: change what has ended (T71), make a lease come back (T35), count back.
void check_step(const ReferenceModel& before, const ReferenceModel& after, const Event& event, Instant now) {
  for (const auto& [lsn, old] : before.tasks()) {
    const auto found = after.tasks().find(lsn);
    if (found == after.tasks().end()) {
      ASSERT_TRUE(is_final(old.state));
      continue;
    }
    const ModelTask& task = found->second;
    ASSERT_GE(task.attempt, old.attempt);
    ASSERT_GE(task.failures, old.failures);
    if (is_final(old.state)) {
      ASSERT_EQ(task.state, old.state);
      ASSERT_EQ(task.place, old.place);
    }
    if (task.hold && (!old.hold || old.hold->lease != task.hold->lease)) {
      ASSERT_EQ(old.state, TaskState::waiting);  // T48, T49: and only by a grant, and the newest of all
      ASSERT_TRUE(std::holds_alternative<LeaseGranted>(event));
      ASSERT_EQ(task.hold->lease, after.last());
    }
    // I12, I13: while a lease is good, nothing moves the task but its holder and the submitter.
    if (old.hold && !task.hold && now < old.hold->expiry) {
      ASSERT_FALSE(std::holds_alternative<LeaseExpired>(event));
    }
    if (std::holds_alternative<TaskCancelled>(event)) {
      ASSERT_EQ(task.state, old.state);
      ASSERT_EQ(task.place, old.place);
    }
  }
}

class Exploration {
 public:
  explicit Exploration(std::uint64_t tasks_max) { rules_.tasks_max = tasks_max; }

  // Explores until there is nothing new, or until `nodes_max` situations were looked at.
  void run(std::size_t nodes_max) {
    Node start{.now = kStart};
    add(record(start, EpochStarted{.key = kKey}, nullptr));
    while (!open_.empty() && looked_at_ < nodes_max && !::testing::Test::HasFatalFailure()) {
      const Node node = std::move(open_.front());
      open_.pop_front();
      ++looked_at_;
      expand(node);
      if (::testing::Test::HasFailure()) return;
    }
  }
  std::size_t looked_at() const { return looked_at_; }
  std::size_t steps() const { return steps_; }
  bool complete() const { return open_.empty(); }

 private:
  void add(Node node) {
    if (seen_.insert(situation(node)).second) open_.push_back(std::move(node));
  }

  // The node after this entry, applied to the core and to the model.
  Node record(const Node& from, const Event& event, State* state) {
    ++steps_;
    Entry entry{type_of(event), {}, {}};
    encode(event, entry.body);
    entry.stamp = {from.model.last() + 1, kEpoch, from.now, static_cast<std::uint32_t>(entry.body.size())};
    Node next{.model = from.model, .now = from.now};
    if (auto wrong = next.model.observe(event, entry.stamp)) ADD_FAILURE() << *wrong;
    State fresh;
    if (state == nullptr) state = &(fresh = state_of(from.history.get()));
    apply(*state, event, entry.stamp);
    check_invariants(*state);
    check_step(from.model, next.model, event, from.now);
    if (auto found = next.model.compare(*state)) ADD_FAILURE() << *found;
    EXPECT_EQ(full_digest(*state), state->digest);
    next.history = std::make_shared<const History>(History{from.history, std::move(entry)});
    return next;
  }

  void expand(const Node& node) {
    const State state = state_of(node.history.get());
    const Moment at{node.now, kEpoch, state.last + 1, rules_};
    for (const Request& request : all_requests(node.model)) {
      if (const auto event =
              due_before(state, {}, request, at)) {  // to be recorded first; asked again from there
        add(record(node, *event, nullptr));
        continue;
      }
      const Decision decision = decide(state, workers_, request, at);
      if (auto found = model::difference(node.model.expected(request, workers_, at), decision)) {
        ADD_FAILURE() << "request " << request.index() << " in " << situation(node) << ": " << *found;
        return;
      }
      if (const auto* append = std::get_if<Append>(&decision)) add(record(node, append->event, nullptr));
    }
    const auto event = due(state, at);
    if (auto found = model::difference(node.model.expected_due(node.now), event)) ADD_FAILURE() << *found;
    if (event) add(record(node, *event, nullptr));
    Node later = node;
    later.now = node.now + milliseconds(1);
    add(std::move(later));
  }

  Rules rules_;
  WorkerRegistry workers_;
  std::deque<Node> open_;
  std::unordered_set<std::string> seen_;
  std::size_t looked_at_ = 0;
  std::size_t steps_ = 0;
};

// T8, T22, T24, T40, T44, T46, T67-T71, D6: in every situation one task can get into, whatever is asked.
TEST(Exploration, OfOneTaskFindsNoWayToBreakAnInvariant) {
  Exploration exploration(1);
  exploration.run(SIZE_MAX);
  EXPECT_TRUE(exploration.complete());
  EXPECT_GE(exploration.looked_at(), 100u);
  std::printf("%zu situations, %zu steps\n", exploration.looked_at(), exploration.steps());
}

// T8, T67-T71, D6: as far as there is time for; BATON_EXPLORE is how many situations to look at.
TEST(Exploration, OfTwoTasksFindsNoWayToBreakAnInvariant) {
  const char* more = std::getenv("BATON_EXPLORE");
  Exploration exploration(2);
  exploration.run(more != nullptr ? std::strtoull(more, nullptr, 10) : 8'000);
  EXPECT_GE(exploration.looked_at(), 1'000u);
  std::printf("%zu situations, %zu steps\n", exploration.looked_at(), exploration.steps());
}

}  // namespace
}  // namespace baton::core
