// Random requests to the core and to the reference model, side by side. A failing seed alone replays it.
#include <set>

#include "core/testing.h"
#include "tests/model/random_requests.h"
#include "tests/model/reference_model.h"

namespace baton::core {
namespace {

// What requests came to, in words: to see that the random ones get everywhere.
using Outcomes = std::set<std::string>;

class Lockstep {
 public:
  explicit Lockstep(std::uint64_t seed) : requests_(seed), random_(requests_.random()), seed_(seed) {
    authority_.rules.tasks_max = requests_.tasks_max();
    authority_.rules.payload_bytes_max = 64;
    authority_.rules.retention_count = 6;
    authority_.rules.retention_age = seconds(40);
    observe();
  }

  void run(unsigned steps, model::Coverage& coverage, Outcomes& outcomes) {
    for (unsigned step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed_) + " step " + std::to_string(step));
      now_ = requests_.later(now_, model_);
      if (random_.one_in(4)) sweep();
      if (random_.one_in(50)) restart();
      if (random_.one_in(10)) purge_what_is_old();
      if (random_.one_in(12)) heartbeat();
      const Request request = requests_.next(model_);
      record_what_is_due(request);
      coverage.count(request, model_, requests_.grants(), now_);
      ask(request, outcomes);
    }
  }

  void check_replay() {
    const State again = replayed(authority_.log());
    EXPECT_EQ(again.digest, authority_.state().digest) << "seed " << seed_;
    if (auto found = model_.compare(again)) ADD_FAILURE() << "seed " << seed_ << ", after replay: " << *found;
    EXPECT_EQ(replayed(authority_.log(), 12345).digest, again.digest) << "seed " << seed_;
  }

 private:
  void observe() {
    for (; observed_ < authority_.log().size(); ++observed_) {
      const Entry& entry = authority_.log()[observed_];
      const auto event = decode(static_cast<std::uint16_t>(entry.type), entry.body);
      ASSERT_TRUE(event.has_value());
      if (auto wrong = model_.observe(*event, entry.stamp)) ADD_FAILURE() << *wrong;
      if (auto found = model_.compare_touched(authority_.state(), *event, entry.stamp))
        ADD_FAILURE() << *found;
    }
  }
  void check() {
    observe();
    if (auto found = model_.compare(authority_.state())) ADD_FAILURE() << *found;
    ASSERT_EQ(full_digest(authority_.state()), authority_.state().digest);
  }
  void record(const Event& event) {
    authority_.record(event, now_);
    check();
  }

  // Some of what is due, as a loop with much to do would.
  void sweep() {
    for (std::uint64_t count = 1 + random_.below(5); count > 0 && !::testing::Test::HasFailure(); --count) {
      const auto event = due(authority_.state(), authority_.moment(now_));
      if (auto found = model::difference(model_.expected_due(now_), event)) ADD_FAILURE() << *found;
      if (!event) return;
      record(*event);
    }
  }
  void record_what_is_due(const Request& request) {
    while (!::testing::Test::HasFailure()) {
      const auto event = due_before(authority_.state(), authority_.workers, request, authority_.moment(now_));
      if (auto found = model::difference(model_.expected_due_before(request, now_), event))
        ADD_FAILURE() << *found;
      if (!event) return;
      record(*event);
    }
  }
  void restart() {
    authority_.record(EpochStarted{.key = kKey}, now_, authority_.state().epoch + 1);
    check();
  }
  void heartbeat() {
    authority_.workers.heartbeat(requests_.ns(), requests_.worker(),
                                 static_cast<std::uint32_t>(random_.below(4)), {}, now_);
    if (random_.one_in(5)) authority_.workers.forget_silent_since(now_);
  }
  void purge_what_is_old() {
    const std::string ns = requests_.ns(), queue = requests_.queue();
    const Slot slot = find_queue(authority_.state(), ns, queue);
    if (slot == 0) return;
    const Moment at = authority_.moment(now_);
    const auto as_event = [](const auto& one) { return one ? std::optional<Event>(*one) : std::nullopt; };
    const auto purged = as_event(overdue_for_purge(authority_.state(), slot, at));
    if (auto found = model::difference(as_event(model_.expected_purge(ns, queue, at)), purged))
      ADD_FAILURE() << *found;
    if (purged) record(*purged);
  }

  void ask(const Request& request, Outcomes& outcomes) {
    const State& state = authority_.state();
    {
      const Moment at = authority_.moment(now_);
      const model::Outcome expected = model_.expected(request, authority_.workers, at);
      const Decision decision = decide(state, authority_.workers, request, at);
      if (auto found = model::difference(expected, decision)) {
        ADD_FAILURE() << "request " << request.index() << ": " << *found;
        return;
      }
    }
    const std::uint64_t digest_before = state.digest;
    const Lsn last_before = state.last;
    const Answer answer = authority_.ask(request, now_);
    // One entry or none; and without one, nothing has changed.
    EXPECT_EQ(state.last, last_before + (answer.appended ? 1 : 0));
    if (!answer.appended) {
      EXPECT_EQ(state.digest, digest_before);
    }
    if (answer.is<Granted>()) {
      const auto granted = answer.as<Granted>();
      requests_.granted(granted.task, granted.lease);
    }
    if (answer.is<Submitted>() && answer.appended) requests_.submitted(answer.as<Submitted>().task);
    outcomes.insert(std::to_string(request.index()) + " " +
                    (answer.refusal
                         ? std::string(word(*answer.refusal))
                         : (answer.appended ? "entry " : "answer ") + std::to_string(answer.reply->index())));
    check();
  }

  model::RandomRequests requests_;
  model::Random& random_;
  std::uint64_t seed_;
  Authority authority_;
  model::ReferenceModel model_;
  std::size_t observed_ = 0;
  Instant now_ = kStart;
};

// T26, T39, T40, T43, T56, T57: decisions, states and what replay makes of the entries are those of the
// model, and every combination of request, task and lease that can occur has occurred.
TEST(RandomRequests, GiveTheSameInTheCoreAndInTheModel) {
  model::Coverage coverage;
  Outcomes outcomes;
  for (std::uint64_t seed = 1; seed <= 1200 && !HasFailure(); ++seed) {
    Lockstep lockstep(seed);
    lockstep.run(500, coverage, outcomes);
    if (!HasFailure()) lockstep.check_replay();
  }
  for (const std::string& cell : coverage.missing()) ADD_FAILURE() << "never met: " << cell;
  EXPECT_GE(outcomes.size(), 60u);
}

}  // namespace
}  // namespace baton::core
