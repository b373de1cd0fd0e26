#include "core/query.h"

#include <ctime>
#include <limits>

#include "core/testing.h"

namespace baton::core {
namespace {

std::vector<std::string> names_of(const QueuePage& page) {
  std::vector<std::string> names;
  for (const QueueView& queue : page.queues) names.push_back(queue.name);
  return names;
}

// Time on the processor, so that a busy machine does not look like slowness of ours.
double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Every queue of the namespace, page by page.
std::vector<std::string> all_pages(const State& state, ListQueues query) {
  std::vector<std::string> all;
  for (;;) {
    const QueuePage page = queues(state, query);
    EXPECT_LE(page.queues.size(), std::max<std::size_t>(query.count_max, 1));
    for (const std::string& name : names_of(page)) all.push_back(name);
    if (page.next.empty()) return all;
    EXPECT_EQ(page.next, all.back());
    query.after = page.next;
  }
}

// Queues in three namespaces, made in no order; some hold tasks, some are only paused, some were forgotten.
Authority with_queues() {
  Authority authority;
  for (const char* ns : {"n", "m", "o"}) {
    for (const char* name : {"q9", "b", "z", "a", "q10", "A", "~", "bb"}) {
      authority.submit({.ns = ns, .queue = name}, kStart);
    }
    authority.ask(PauseQueue{ns, "paused"}, kStart);
    authority.ask(PauseQueue{ns, "gone"}, kStart);
    authority.ask(ResumeQueue{ns, "gone"}, kStart);
  }
  return authority;
}
const std::vector<std::string> kSorted = {"A", "a", "b", "bb", "paused", "q10", "q9", "z", "~"};

TEST(ListQueues, GivesEachQueueOnceByNameWhateverTheSizeOfThePage) {
  const Authority authority = with_queues();
  for (std::size_t count = 0; count <= kSorted.size() + 1; ++count) {
    EXPECT_EQ(all_pages(authority.state(), {.ns = "n", .count_max = count}), kSorted) << count;
  }
  EXPECT_TRUE(all_pages(authority.state(), {.ns = "nobody"}).empty());
}

TEST(ListQueues, GoesOnBehindAQueueThatIsNoLongerThere) {
  const Authority authority = with_queues();
  EXPECT_EQ(names_of(queues(authority.state(), {.ns = "n", .after = "gone", .count_max = 1})),
            (std::vector<std::string>{"paused"}));
  EXPECT_EQ(names_of(queues(authority.state(), {.ns = "n", .after = "z"})), (std::vector<std::string>{"~"}));
  EXPECT_TRUE(queues(authority.state(), {.ns = "n", .after = "~"}).queues.empty());
}

TEST(ListQueues, SaysWhatIsInThem) {
  Authority authority;
  authority.submit(a_task(), kStart);
  authority.submit({.ns = "n", .queue = "q", .delay = seconds(5)}, kStart);
  authority.grant(a_worker(), kStart);
  authority.ask(PauseQueue{"n", "q"}, kStart);
  const QueuePage page = queues(authority.state(), {.ns = "n"});
  ASSERT_EQ(page.queues.size(), 1u);
  EXPECT_TRUE(page.queues[0].paused);
  EXPECT_EQ(page.queues[0].counts, (std::array<std::uint64_t, kTaskStates>{1, 1, 0, 0, 0}));
  EXPECT_EQ(page.queues[0].delayed, 1u);
  EXPECT_EQ(queues(authority.state(), {.ns = "n", .now = kStart + seconds(5)}).queues[0].delayed, 0u)
      << "it is due by then";
}

// X3: a page is bounded, and finding it costs no more because there are many queues.
TEST(ListQueues, TakesAPageOfTheMostThereMayBeInLittleTime) {
  State state;
  for (Lsn lsn = 1; lsn <= kQueuesMax; ++lsn) {
    const std::string name = "a-name-of-common-length-" + std::to_string(lsn * 7919 % kQueuesMax);
    apply(state, QueuePaused{.ns = "n", .queue = name}, {.lsn = lsn, .time = kStart});
  }
  double longest_ms = 0;
  std::size_t seen = 0;
  ListQueues query{.ns = "n", .count_max = kListQueuesMax + 1};
  do {
    QueuePage page;
    double shortest_ms =
        std::numeric_limits<double>::max();  // of a few: others use the processor's caches too
    for (int tries = 0; tries < 3; ++tries) {
      const double began = processor_ms();
      page = queues(state, query);
      shortest_ms = std::min(shortest_ms, processor_ms() - began);
    }
    longest_ms = std::max(longest_ms, shortest_ms);
    EXPECT_LE(page.queues.size(), kListQueuesMax);
    seen += page.queues.size();
    query.after = page.next;
  } while (!query.after.empty());
  EXPECT_EQ(seen, kQueuesMax);
  EXPECT_LT(longest_ms, 5.0);
  RecordProperty("longest_page_us", static_cast<int>(longest_ms * 1000));
}

// Tasks of two namespaces and two queues in every state, some leased by one worker and some by the other, and
// with the same name in both namespaces; each came into its state at a time of its own.
Authority with_tasks() {
  Authority authority;
  Instant now = kStart;
  for (const char* ns : {"n", "m"}) {
    for (const char* queue : {"q", "p"}) {
      for (const char* worker : {"v", "w"}) {
        const auto grant = [&] {
          now = now + milliseconds(1);
          authority.submit({.ns = ns, .queue = queue}, now);
          return authority.grant({.ns = ns, .queues = {queue}, .worker = worker, .ttl = hours(1)}, now);
        };
        grant();
        const Granted done = grant(), failed = grant(), dead = grant();
        authority.ask(CompleteTask{.ns = ns, .task = done.task, .lease = done.lease}, now);
        authority.ask(FailTask{.ns = ns, .task = failed.task, .lease = failed.lease, .final = true}, now);
        authority.ask(CancelTask{.ns = ns, .task = dead.task}, now);
      }
      authority.submit({.ns = ns, .queue = queue, .delay = milliseconds(20)}, now);
    }
  }
  return authority;
}

std::vector<Lsn> listed(const State& state, ListTasks query) {
  std::vector<Lsn> lsns;
  do {
    const TaskPage page = list(state, query);
    EXPECT_LE(page.tasks.size(), std::max<std::size_t>(query.count_max, 1));
    for (const TaskView& task : page.tasks) lsns.push_back(task.id.lsn);
    query.from = page.next;
  } while (query.from != 0);
  return lsns;
}

// What is asked for, found by looking at the view of every task.
std::vector<Lsn> filtered(const State& state, const ListTasks& query) {
  std::vector<Lsn> lsns;
  for (Lsn lsn = 1; lsn <= state.last; ++lsn) {
    const auto task = view(state, query.ns, TaskId{state.epoch, lsn});
    if (!task) continue;
    if (!query.queue.empty() && task->queue != query.queue) continue;
    if (query.state && task->state != *query.state) continue;
    if (!query.worker.empty() && (task->state != TaskState::leased || task->worker != query.worker)) continue;
    if (query.older_than && task->since >= *query.older_than) continue;
    lsns.push_back(lsn);
  }
  return lsns;
}

TEST(ListTasks, GivesWhatEveryCombinationOfFiltersAsksFor) {
  const Authority authority = with_tasks();
  const State& state = authority.state();
  std::vector<std::optional<TaskState>> states = {std::nullopt};
  for (std::size_t i = 0; i < kTaskStates; ++i) states.push_back(static_cast<TaskState>(i));
  std::vector<std::optional<Instant>> ages = {std::nullopt};
  for (std::int64_t ms = 0; ms <= 60; ++ms) ages.emplace_back(kStart + milliseconds(ms));

  std::size_t matches = 0;
  for (const char* ns : {"n", "m", "o"}) {
    for (const char* queue : {"", "q", "p", "x"}) {
      for (const auto& in : states) {
        for (const char* worker : {"", "v", "w", "x"}) {
          for (const auto& age : ages) {
            ListTasks query{.ns = ns, .queue = queue, .state = in, .worker = worker, .older_than = age};
            const std::vector<Lsn> wanted = filtered(state, query);
            matches += wanted.size();
            ASSERT_EQ(listed(state, query), wanted);
            for (query.count_max = 0; query.count_max <= 3; ++query.count_max) {
              ASSERT_EQ(listed(state, query), wanted);
            }
          }
        }
      }
    }
  }
  EXPECT_GT(matches, 5'000u);  // most of it is not about empty lists
}

// X3: a filter that nothing passes costs no more per call than any other.
TEST(ListTasks, LooksAtABoundedNumberOfTasksForAPage) {
  State state;
  const Lsn count = 2 * kListExaminedMax + 1;
  for (Lsn lsn = 1; lsn <= count; ++lsn) {
    apply(state, TaskCreated{.ns = "n", .queue = "q", .eligible_at = kStart, .max_attempts = 1},
          {.lsn = lsn, .time = kStart});
  }
  for (ListTasks query : {ListTasks{.ns = "n", .worker = "w"}, ListTasks{.ns = "n", .older_than = kStart}}) {
    for (const Lsn next : {Lsn{kListExaminedMax + 1}, count, Lsn{0}}) {
      const TaskPage page = list(state, query);
      EXPECT_TRUE(page.tasks.empty());
      EXPECT_EQ(page.next, next);
      query.from = page.next;
    }
  }
}

}  // namespace
}  // namespace baton::core
