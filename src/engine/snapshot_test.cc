// The bytes of a snapshot, pinned: a small state with every kind of thing in it.
#include "engine/snapshot.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "core/apply.h"
#include "core/digest.h"
#include "core/query.h"
#include "tests/golden.h"
#include "tests/sim/sim_disk.h"

namespace baton::engine {
namespace {

using namespace core;

constexpr Instant kStart{1'700'000'000'000};
constexpr const char* kCurrent = "snapshot-v1.0.hex";

log::Uuid some_uuid() {
  log::Uuid uuid;
  for (std::size_t index = 0; index < 16; ++index) uuid.bytes[index] = static_cast<std::byte>(0xa0 + index);
  return uuid;
}

BlobView blob(std::string_view text) { return {bytes_of(text), content_hash(bytes_of(text))}; }

// Writes a history down, an entry a second.
class History {
 public:
  Lsn operator()(const Event& event) {
    if (std::holds_alternative<EpochStarted>(event)) ++epoch_;
    const Lsn lsn = state_.last + 1;
    apply(state_, event, {.lsn = lsn, .epoch = epoch_, .time = now(), .body_end = 10'000});
    kinds_.insert(event.index());
    return lsn;
  }
  Instant now() const { return kStart + seconds(static_cast<std::int64_t>(state_.last)); }

  Lsn create(TaskCreated task = {}) {
    if (task.ns.empty()) task.ns = "mail";
    if (task.queue.empty()) task.queue = "letters";
    if (task.eligible_at == Instant{}) task.eligible_at = now();
    if (task.max_attempts == 0) task.max_attempts = kDefaultMaxAttempts;
    return (*this)(task);
  }
  Lsn grant(Lsn task, std::uint32_t attempt = 1, Duration ttl = minutes(10)) {
    return (*this)(LeaseGranted{.task = task, .attempt = attempt, .expiry = now() + ttl, .worker = "alice"});
  }

  State& state() { return state_; }
  const std::set<std::size_t>& kinds() const { return kinds_; }

 private:
  State state_;
  Epoch epoch_ = 6;
  std::set<std::size_t> kinds_;
};

void waiting_tasks(History& history) {
  history.create({.payload = blob("waits")});
  history.create({.queue = "parcels", .capabilities = "stamps van", .priority = 9});
  history.create({.ns = "other", .queue = "letters", .eligible_at = history.now() + days(1)});
  history.create({.key = "greet-alice",
                  .content = 0x0123456789abcdef,
                  .retry = {.max_failures = 3,
                            .base = milliseconds(250),
                            .factor_percent = 150,
                            .max = minutes(1),
                            .jitter_percent = 0},
                  .max_attempts = 7,
                  .max_hold = hours(2),
                  .payload = blob("under a key")});
}

void attempts(History& history) {
  const Lsn held = history.create({.payload = blob("held")});
  const Lsn lease = history.grant(held);
  history(LeaseExtended{.task = held, .lease = lease, .expiry = history.now() + minutes(11)});
  history(LeasesExtended{{{.task = held, .lease = lease, .expiry = history.now() + minutes(12)}}});

  const Lsn lost = history.create();
  const Lsn lapsed = history.grant(lost, 1, milliseconds(1));
  history(LeaseExpired{.task = lost, .lease = lapsed});
  history(TaskCancelled{.task = lost, .lease = lapsed});
  history(TaskFailed{.task = lost,
                     .lease = history.grant(lost, 2),
                     .outcome = Ended::retried,
                     .failures = 1,
                     .retry_at = history.now() + hours(1),
                     .reason = blob("no stamp")});

  const Lsn given_back = history.create();
  const Lsn tried = history.grant(given_back);
  history(
      TaskFailed{.task = given_back, .lease = tried, .outcome = Ended::released, .retry_at = history.now()});
}

void ends(History& history) {
  const Lsn done = history.create({.payload = blob("done")});
  const Lsn by = history.grant(done);
  history(TaskCompleted{.task = done, .lease = by, .result = blob("sent")});
  history(BlobMoved{.task = done, .part = BlobPart::payload, .blob = blob("done")});
  history(BlobMoved{.task = done, .part = BlobPart::note, .lease = by, .blob = blob("sent")});

  const Lsn failed = history.create({.payload = blob("fails")});
  const Lsn last = history.grant(failed);
  history(TaskFailed{.task = failed, .lease = last, .failures = 1, .reason = blob("no address")});
  history.create({.retry_of = {history.state().epoch, failed},
                  .payload_of_old = history.state().tasks[history.state().ids.find(failed)].payload});

  const Lsn cancelled = history.create();
  history.grant(cancelled);
  history(TaskDead{.task = cancelled, .actor = "bob", .note = blob("not wanted")});
  const Lsn worn_out = history.create({.max_attempts = 1});
  history(LeaseExpired{.task = worn_out, .lease = history.grant(worn_out, 1, milliseconds(1))});
  history(TaskDead{.task = worn_out, .why = DeadReason::attempts_exhausted});

  const Lsn forgotten = history.create();
  history(TaskDead{.task = forgotten});
  history(TasksPurged{{forgotten}});
}

History everything() {
  History history;
  history(EpochStarted{.key = {1, 2}});
  waiting_tasks(history);
  attempts(history);
  history(Sealed{});
  history(EpochStarted{.key = {1, 2}});
  ends(history);
  history(QueuePaused{.ns = "mail", .queue = "parcels"});
  history(QueuePaused{.ns = "other", .queue = "empty"});
  history(QueuePaused{.ns = "other", .queue = "gone"});
  history(QueueResumed{.ns = "other", .queue = "gone"});
  history(SnapshotTaken{.lsn = 3, .digest = 4});
  history(StateDigest{.digest = history.state().digest});
  return history;
}

stream::Uuid numbered(std::uint8_t kind, std::uint8_t number) {
  stream::Uuid uuid;
  uuid.bytes[0] = std::byte{kind}, uuid.bytes[15] = std::byte{number};
  return uuid;
}

WorkBatchApplied turn(std::uint8_t instance, bool joins = false) {
  WorkBatchApplied batch{.ns = "shop", .instance = {numbered(3, instance)}};
  if (joins)
    batch.heard = {.joins = true, .service = "orders", .host = "here", .process = 7, .metadata = "{}"};
  return batch;
}

MessageStored message(std::uint8_t number, std::uint64_t stream, std::string_view body) {
  return {.id = {numbered(1, number)},
          .lane = stream::Lane::inbox,
          .stream = stream,
          .data_bytes = 2,
          .appends_event = stream != 0,
          .is_event = stream != 0,
          .policy = stream == 0 ? stream::FailurePolicy::park : stream::FailurePolicy::block,
          .body = blob(body)};
}

// Two streams and three messages without one: a retry, a kept one, dead letters, and all that is remembered.
History streams() {
  History history;
  history(EpochStarted{.key = {1, 2}});
  WorkBatchApplied stored = turn(1, true);
  for (std::uint8_t i = 1; i <= 2; ++i)
    stored.opened.push_back({.id = {numbered(2, i)}, .lane = stream::Lane::inbox, .partition = i});
  stored.stored = {message(1, 1, "tried"), message(2, 1, "kept"),     message(3, 2, "held"),
                   message(4, 0, "dead"),  message(5, 0, "replayed"), message(6, 0, "purged")};
  history(stored);
  WorkBatchApplied claim = turn(2, true);
  claim.lease_until = history.now() + minutes(5);
  claim.claims = {{1, 2, 2}, {2, 1, 1}, {3, 1, 1}, {4, 1, 1}, {5, 1, 1}};
  history(claim);
  WorkBatchApplied report = turn(2);
  report.reports = {{.message = 1,
                     .how = Reported::retried,
                     .status = 32769,
                     .reason = 2,
                     .due = history.now() + hours(1),
                     .error = blob("later")},
                    {.message = 2, .how = Reported::kept, .status = 3}};
  for (const std::uint64_t dead : {4, 5, 6})
    report.reports.push_back({.message = dead,
                              .how = Reported::dead,
                              .status = 32769,
                              .reason = 99,
                              .policy = stream::FailurePolicy::park,
                              .error = blob("never")});
  report.receptors = {{.event = {numbered(1, 1)},
                       .receptor = "mail",
                       .status = stream::ReceptorStatus::failed,
                       .attempts = 2,
                       .error = "no"}};
  report.checkpoints = {{.stream = {numbered(2, 1)},
                         .perspective = "totals",
                         .status = stream::PerspectiveStatus::completed,
                         .version = 0,
                         .ahead = {2}}};
  report.renewals = {{2, history.now() + minutes(9)}};
  history(report);
  history(LettersReplayed{{3}});
  history(LettersPurged{{4}});
  history(MessageBlobMoved{.number = 1, .blob = blob("tried")});
  history(InstanceLeft{history(turn(3, true))});
  history(InstancesEvicted{{history(turn(4, true))}});
  history(StreamsForgotten{.seen = 1});
  return history;
}

// So that nobody adds a kind of entry, a state or an ending and forgets it here.
TEST(GoldenSnapshot, HasEveryKindOfThingInIt) {
  History history = everything();
  std::set<std::size_t> kinds = history.kinds();
  kinds.merge(std::set(streams().kinds()));
  EXPECT_EQ(kinds.size(), std::variant_size_v<Event>);
  const State& state = history.state();
  std::set<TaskState> states;
  std::set<DeadReason> deaths;
  std::set<Ended> endings;
  for (Slot slot = state.ids.first_from(0); slot != 0;
       slot = state.ids.first_from(state.tasks[slot].lsn + 1)) {
    const Task& task = state.tasks[slot];
    states.insert(task.state);
    deaths.insert(task.dead_reason);
    for (Slot at = task.endings; at != 0; at = state.endings[at].next) endings.insert(state.endings[at].how);
  }
  EXPECT_EQ(states.size(), kTaskStates);
  EXPECT_EQ(deaths.size(), static_cast<std::size_t>(DeadReason::attempts_exhausted) + 1);
  EXPECT_EQ(endings.size(), static_cast<std::size_t>(Ended::dead) + 1);
}

TEST(GoldenSnapshot, HasTheSameBytesAsEver) {
  History history = everything();
  sim::SimDisk disk;
  const auto written = write_snapshot(disk, some_uuid(), history.state());
  ASSERT_TRUE(written) << written.error().message;
  const Bytes bytes = disk.content(snapshot_path(history.state().last));
  EXPECT_EQ(*written, bytes.size());
  expect_golden(kCurrent, bytes);
}

// Streams came later: behind the rest, in a file of their own.
TEST(GoldenSnapshot, OfStreamsHasTheSameBytesAsEver) {
  History history = streams();
  const core::streams::Streams& all = history.state().streams;
  EXPECT_EQ(all.streams.used(), 3u);
  EXPECT_EQ(all.dead.all.used() + all.kept.all.used(), 2u);
  sim::SimDisk disk;
  ASSERT_TRUE(write_snapshot(disk, some_uuid(), history.state()));
  expect_golden("streams-v1.0.hex", disk.content(snapshot_path(history.state().last)));
  const auto state = read_snapshot(disk, some_uuid(), history.state().last);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(full_digest(*state), history.state().digest);
}

// All that can be asked about a state.
std::string described(const State& state) {
  std::string text = fmt::format("{} {} {} {:x}\n", state.last, state.epoch, state.time.ms, state.digest);
  for (const char* ns : {"mail", "other"}) {
    for (const QueueView& queue : queues(state, {.ns = ns}).queues) {
      text += fmt::format("{} {} {} {} {}\n", ns, queue.name, queue.paused, fmt::join(queue.counts, " "),
                          queue.delayed);
    }
    for (const TaskView& task : list(state, {.ns = ns, .count_max = kListTasksMax}).tasks) {
      text +=
          fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}+{} {}+{}\n", task.id.lsn,
                      task.queue, task.key, name_of(task.state), name_of(task.dead_reason), task.priority,
                      task.attempt, task.failures, task.created_at.ms, task.since.ms, task.worker,
                      task.lease_expiry.ms, task.lease_epoch, task.lease, task.retry_of.lsn,
                      task.capabilities, task.payload.lsn, task.payload.hash, task.note.lsn, task.note.hash);
    }
  }
  return text;
}

// X5: the log shares the disk, and must not wait behind all of a large snapshot.
TEST(Snapshot, IsSyncedAFewMebibytesAtATime) {
  History history;
  history(EpochStarted{.key = {1, 2}});
  const std::string wide(120, 'k');
  for (int number = 0; number < 80'000; ++number) history.create({.key = wide + std::to_string(number)});
  sim::SimDisk disk;
  std::uint64_t syncs = 0, synced = 0, unsynced_most = 0;
  const auto written =
      write_snapshot(disk, some_uuid(), history.state(), [&](std::uint64_t so_far, std::uint64_t next) {
        if (std::exchange(syncs, disk.syncs()) != disk.syncs()) synced = so_far;
        unsynced_most = std::max(unsynced_most, so_far + next - synced);
        return Status{};
      });
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_GT(*written, std::uint64_t{10} << 20);
  EXPECT_LT(unsynced_most, std::uint64_t{6} << 20);
}

// Whatever version wrote it: every file that ever was in the folder stays there.
TEST(GoldenSnapshot, OfEveryVersionCanBeRead) {
  History history = everything();
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_path(""))) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("snapshot-")) continue;
    SCOPED_TRACE(name);
    ++found;
    sim::SimDisk disk;
    ASSERT_TRUE(disk.make_directory("snap"));
    disk.set_content(snapshot_path(history.state().last), from_hex_dump(golden(name)));
    const auto state = read_snapshot(disk, some_uuid(), history.state().last);
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_EQ(described(*state), described(history.state()));
    EXPECT_EQ(full_digest(*state), state->digest);
  }
  EXPECT_GE(found, 1u);
  EXPECT_TRUE(std::filesystem::exists(golden_path("snapshot-v1.0.hex")));
}

}  // namespace
}  // namespace baton::engine
