#include "core/query.h"

#include <ctime>

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
    const double began = processor_ms();
    const QueuePage page = queues(state, query);
    longest_ms = std::max(longest_ms, processor_ms() - began);
    EXPECT_LE(page.queues.size(), kListQueuesMax);
    seen += page.queues.size();
    query.after = page.next;
  } while (!query.after.empty());
  EXPECT_EQ(seen, kQueuesMax);
  EXPECT_LT(longest_ms, 5.0);
  RecordProperty("longest_page_us", static_cast<int>(longest_ms * 1000));
}

}  // namespace
}  // namespace baton::core
