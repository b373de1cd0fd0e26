// Every request that speaks of a task, in every state of the task, under every kind of lease.
#include "core/testing.h"

namespace baton::core {
namespace {

enum class How { waiting, leased, completed, failed, dead, gone };
// What the lease at hand is to the task. The `ender` is the lease under which the task came into its last
// state.
enum class Whose { current, expired, retried, released, ender, others, invented, none };

struct Scene {
  Authority authority;
  TaskId task;
  LeaseId lease;
  Instant now;
};

constexpr std::string_view kResult = "result";
constexpr std::string_view kReason = "reason";

// The task once leased, ended in the way that makes that lease what it is to be.
LeaseId with_a_past(Authority& authority, Whose whose, Instant& now) {
  const auto held = authority.grant(a_worker(), now);
  if (whose == Whose::expired) authority.pass(now = now + kTtl);
  if (whose == Whose::retried) authority.ask(fail(held, kReason), now);
  if (whose == Whose::released) authority.ask(release(held), now);
  now = now + seconds(5);  // any wait is over
  return held.lease;
}

Scene scene(How how, Whose whose) {
  Scene scene;
  scene.now = kStart;
  Authority& authority = scene.authority;
  SubmitTask other = a_task();
  other.queue = "other";
  authority.submit(other, kStart);
  LeaseTask on_other = a_worker();
  on_other.queues = {"other"};
  on_other.ttl = hours(1);
  const auto others = authority.grant(on_other, kStart);

  scene.task = authority.submit(a_task(), kStart);
  const bool has_past = whose == Whose::expired || whose == Whose::retried || whose == Whose::released;
  if (has_past) scene.lease = with_a_past(authority, whose, scene.now);
  if (how != How::waiting) {
    const auto held = authority.grant(a_worker(), scene.now);
    if (whose == Whose::current || whose == Whose::ender || whose == Whose::invented)
      scene.lease = held.lease;
    FailTask final = fail(held, kReason);
    final.final = true;
    if (how == How::completed || how == How::gone) authority.ask(complete(held, kResult), scene.now);
    if (how == How::failed) authority.ask(final, scene.now);
    if (how == How::dead) authority.ask(cancel(scene.task), scene.now);
    if (how == How::gone) authority.ask(PurgeQueue{.ns = "n", .queue = "q"}, scene.now);
  }
  if (whose == Whose::others) scene.lease = others.lease;
  if (whose == Whose::invented) scene.lease = {kEpoch, scene.task.lsn + 1, scene.lease.nonce ^ 1};
  scene.now = scene.now + seconds(20);  // late enough for an extension to be recorded
  return scene;
}

std::string what_comes_of(Scene& scene, const Request& request) {
  const std::uint64_t digest = scene.authority.state().digest;
  const Lsn last = scene.authority.state().last;
  const Answer answer = scene.authority.ask(request, scene.now);
  if (answer.appended) {
    EXPECT_EQ(scene.authority.state().last, last + 1);
    return std::string(name_of(*answer.appended));
  }
  EXPECT_EQ(scene.authority.state().last, last);
  EXPECT_EQ(scene.authority.state().digest, digest);
  if (answer.refusal) return std::string(word(*answer.refusal));
  return answer.is<Cancelled>() ? "cancelled again" : "the same answer";
}

using Row = std::array<std::string, 4>;  // extend, complete, fail, release

Row expected(How how, Whose whose) {
  const std::string lost = "LEASE_LOST", conflict = "CONFLICT", same = "the same answer",
                    told = "TaskCancelled";
  if (how == How::gone) return {"NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND"};
  if (whose == Whose::ender && how == How::completed) return {lost, same, conflict, conflict};
  if (whose == Whose::ender && how == How::failed) return {lost, conflict, same, conflict};
  if (whose == Whose::ender) return {lost, told, told, told};  // it was taken away by the submitter
  switch (whose) {
    case Whose::current: return {"LeaseExtended", "TaskCompleted", "TaskFailed", "TaskFailed"};
    case Whose::expired: return {lost, told, told, told};
    case Whose::retried: return {lost, conflict, same, conflict};
    case Whose::released: return {lost, conflict, conflict, same};
    default: return {"LEASE_UNKNOWN", "LEASE_UNKNOWN", "LEASE_UNKNOWN", "LEASE_UNKNOWN"};
  }
}

std::vector<std::pair<How, Whose>> all_scenes() {
  std::vector<std::pair<How, Whose>> scenes;
  for (const How how : {How::waiting, How::leased, How::completed, How::failed, How::dead, How::gone}) {
    for (const Whose whose : {Whose::expired, Whose::retried, Whose::released, Whose::others, Whose::none}) {
      scenes.emplace_back(how, whose);
    }
    scenes.emplace_back(how, Whose::invented);
    if (how == How::leased) scenes.emplace_back(how, Whose::current);
    if (how >= How::completed) scenes.emplace_back(how, Whose::ender);
  }
  return scenes;
}

std::array<Request, 4> words_of_a_worker(TaskId task, const LeaseId& lease) {
  const Granted held{.task = task, .lease = lease};
  return {extend(held), complete(held, kResult), fail(held, kReason), release(held)};
}

// T9, T25, T35, T36, T37, T38, T39, T49, D7, D8, D9, D10
TEST(AWorkersWord, IsWorthWhatItsLeaseIsToTheTask) {
  for (const auto& [how, whose] : all_scenes()) {
    for (std::size_t i = 0; i < 4; ++i) {
      SCOPED_TRACE("state " + std::to_string(int(how)) + " lease " + std::to_string(int(whose)) + " word " +
                   std::to_string(i));
      Scene at = scene(how, whose);
      EXPECT_EQ(what_comes_of(at, words_of_a_worker(at.task, at.lease)[i]), expected(how, whose)[i]);
    }
  }
}

// T53, D7: it is told once in the log, the task stays as it is, and the same answer is given from then on.
TEST(TaskCancelled, IsRecordedOncePerLeaseAndLeavesTheTaskAlone) {
  for (const How how : {How::waiting, How::leased, How::completed, How::failed, How::dead}) {
    Scene at = scene(how, Whose::expired);
    const Task before = at.authority.task(at.task);
    const auto words = words_of_a_worker(at.task, at.lease);
    EXPECT_EQ(what_comes_of(at, words[1]), "TaskCancelled");
    const Task& after = at.authority.task(at.task);
    EXPECT_EQ(after.state, before.state);
    EXPECT_EQ(after.attempt, before.attempt);
    EXPECT_EQ(after.failures, before.failures);
    EXPECT_EQ(after.since, before.since);
    EXPECT_EQ(after.place, before.place);
    EXPECT_EQ(after.lease, before.lease);
    for (const std::size_t again : {1u, 2u, 3u})
      EXPECT_EQ(what_comes_of(at, words[again]), "cancelled again");
  }
}

// D10: the answer to a repeated completion or failure is the one that was given.
TEST(Repeating, GivesTheFirstAnswerAgain) {
  auto [authority, held] = a_leased_task();
  const auto failed = authority.ask(fail(held, "no luck"), kStart).as<Committed>();
  EXPECT_EQ(failed.outcome, Ended::retried);
  const auto again = authority.ask(fail(held, "no luck"), kStart + hours(1)).as<Committed>();
  EXPECT_EQ(again.outcome, Ended::retried);
  EXPECT_EQ(again.retry_at, failed.retry_at);
  EXPECT_EQ(authority.ask(fail(held, "bad luck"), kStart).refusal, Errc::conflict);

  held = authority.grant(a_worker(), kStart + hours(1));
  authority.ask(complete(held, "42"), kStart + hours(1));
  EXPECT_EQ(authority.ask(complete(held, "42"), kStart + hours(9)).as<Committed>().outcome, Ended::completed);
  EXPECT_EQ(authority.ask(complete(held, "43"), kStart + hours(9)).refusal, Errc::conflict);
  EXPECT_EQ(authority.ask(complete(held, ""), kStart + hours(9)).refusal, Errc::conflict);
}

// E4, D7, D10: eight leases are remembered; older ones are as if they had never been.
TEST(PastLeases, AreForgottenBeyondTheEighth) {
  Authority authority;
  authority.submit(a_task(), kStart);
  std::vector<Granted> held;
  for (unsigned i = 0; i <= kEndingsKept; ++i) {
    held.push_back(authority.grant(a_worker(), kStart));
    authority.ask(release(held.back()), kStart);
    EXPECT_LE(authority.state().endings.used(), kEndingsKept);
  }
  EXPECT_EQ(authority.ask(complete(held[0]), kStart).refusal, Errc::lease_unknown);
  EXPECT_EQ(authority.ask(extend(held[0]), kStart).refusal, Errc::lease_unknown);
  for (unsigned i = 1; i <= kEndingsKept; ++i) {
    EXPECT_EQ(authority.ask(release(held[i]), kStart).as<Committed>().outcome, Ended::released);
  }
}

// E4: the death of a task that nobody holds takes no lease's place.
TEST(PastLeases, AreAllKeptWhenTheTaskDiesUnheld) {
  Authority authority;
  const TaskId task = authority.submit(a_task(), kStart);
  std::vector<Granted> held;
  for (unsigned i = 0; i < kEndingsKept; ++i) {
    held.push_back(authority.grant(a_worker(), kStart));
    authority.ask(release(held.back()), kStart);
  }
  authority.ask(cancel(task), kStart);
  EXPECT_EQ(authority.ask(release(held[0]), kStart).as<Committed>().outcome, Ended::released);
}

// D16, T71: nothing but purging changes a task that has ended.
TEST(AFinishedTask, NeverChangesAgain) {
  for (const How how : {How::completed, How::failed, How::dead}) {
    Scene at = scene(how, Whose::ender);
    const Task before = at.authority.task(at.task);
    for (const Request& word : words_of_a_worker(at.task, at.lease)) at.authority.ask(word, at.now);
    at.authority.ask(cancel(at.task), at.now);
    at.authority.ask(RequeueTask{.ns = "n", .task = at.task}, at.now);
    at.authority.pass(at.now + days(100));
    const Task& after = at.authority.task(at.task);
    EXPECT_EQ(after.state, before.state);
    EXPECT_EQ(after.place, before.place);
    EXPECT_EQ(after.since, before.since);
    EXPECT_EQ(after.lease, 0u);
  }
}

// T58: a worker's own deadline or clock is no part of any request; what counts is when the coordinator
// decides.
TEST(Completion, CountsUntilJustBeforeTheDeadline) {  // D4, T52
  auto [authority, held] = a_leased_task();
  EXPECT_EQ(authority.ask(complete(held), just_before(kStart + kTtl)).as<Committed>().outcome,
            Ended::completed);
  auto [later, too_late] = a_leased_task();
  EXPECT_TRUE(later.ask(complete(too_late), kStart + kTtl).is<Cancelled>());
  EXPECT_EQ(later.task(too_late.task).state, TaskState::waiting);
}

// T52, D29
TEST(Completion, EndsTheTaskAndKeepsItsResult) {
  auto [authority, held] = a_leased_task();
  authority.ask(complete(held, "forty-two"), kStart);
  const Task& task = authority.task(held.task);
  EXPECT_EQ(task.state, TaskState::completed);
  EXPECT_EQ(task.lease, 0u);
  const Ending& ending = authority.state().endings[task.endings];
  EXPECT_EQ(ending.note.length, 9u);
  EXPECT_EQ(ending.note.hash, Blob("forty-two").hash());
  // The result is the last part of the record's body.
  const Stamp& stamp = authority.log().back().stamp;
  EXPECT_EQ(ending.note.lsn, stamp.lsn);
  EXPECT_EQ(ending.note.offset + ending.note.length, stamp.body_end);
}

}  // namespace
}  // namespace baton::core
