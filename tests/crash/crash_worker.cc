// The process under test: clients and workers on an embedded coordinator, until somebody kills it. What was
// acknowledged goes to standard output at once, in the words of vocabulary.h.
//   crash_worker DIRECTORY SEED ROUND
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "base/check.h"
#include "base/mutant.h"
#include "engine/coordinator.h"
#include "tests/crash/speech.h"
#include "tests/crash/vocabulary.h"

namespace baton::crash {
namespace {

constexpr unsigned kSubmissionsMax = 150;  // of each client in one round, so that what is checked stays small

class Actor {
 public:
  Actor(Coordinator& coordinator, std::uint64_t seed, unsigned number, unsigned round)
      : coordinator_(coordinator), dice_(seed * 1000 + number), number_(number), round_(round) {}

  void be_client();
  void be_worker();
  void be_operator();

 private:
  std::uint64_t below(std::uint64_t bound) { return dice_() % bound; }
  void refused(std::string_view operation, const Error& error, std::string_view key = "-") {
    say("x {} {} {}", operation, word(error.code), key);
  }
  void submit();
  void cancel(const std::string& key);
  void requeue(const std::string& key);
  void finish(const LeasedTask& leased);
  void settle(char how, const LeasedTask& leased, Result<Verdict> (*act)(Coordinator&, const LeasedTask&));

  Coordinator& coordinator_;
  std::mt19937_64 dice_;
  const unsigned number_;
  const unsigned round_;
  unsigned submitted_ = 0;
  unsigned requeued_ = 0;
};

void Actor::submit() {
  const std::string key = fmt::format("k.{}.{}.{}", round_, number_, submitted_++);
  const char* queues[] = {kKept, kKept, kPurged, kPaused};
  SubmitTask request{
      .ns = kNamespace, .queue = queues[below(4)], .payload = Blob(payload_of(key)), .key = key};
  request.priority = static_cast<std::uint8_t>(below(3));
  request.retry = {.max_failures = 2, .base = milliseconds(1), .max = milliseconds(5)};
  // A client that did not hear the answer asks again. A key is known as long as its task is, so not where
  // tasks are purged.
  const int times = below(10) == 0 && request.queue != kPurged ? 2 : 1;
  for (int time = 0; time < times; ++time) {
    const auto done = coordinator_.submit(request);
    if (!done) return refused("s", done.error(), key);
    say("s {} {} {}", key, core::to_text(done->task), done->existed ? 1 : 0);
  }
}

void Actor::cancel(const std::string& key) {
  say("k? {}", key);
  const auto done = coordinator_.cancel({.ns = kNamespace, .task = TaskRef::by_key(key), .actor = "client"});
  if (done) return say("k {}", key);
  refused("k", done.error(), key);
}

void Actor::requeue(const std::string& old) {
  const std::string key = fmt::format("q.{}.{}.{}", round_, number_, requeued_++);
  const auto view = coordinator_.get(kNamespace, TaskRef::by_key(old));
  const auto done = coordinator_.requeue({.ns = kNamespace, .task = TaskRef::by_key(old), .key = key});
  if (!done || !view) return refused("r", done ? view.error() : done.error(), key);
  say("r {} {} {}", key, core::to_text(done->task), core::to_text(view->id));
}

void Actor::be_client() {
  while (submitted_ < kSubmissionsMax) {
    submit();
    if (below(12) == 0) cancel(fmt::format("k.{}.{}.{}", round_, number_, below(submitted_)));
    if (below(12) == 0) requeue(fmt::format("k.{}.{}.{}", round_, number_, below(submitted_)));
  }
}

void Actor::settle(char how, const LeasedTask& leased,
                   Result<Verdict> (*act)(Coordinator&, const LeasedTask&)) {
  const std::string names = fmt::format("{} {}", core::to_text(leased.task), core::to_text(leased.lease));
  say("{}? {}", how, names);
  const auto done = act(coordinator_, leased);
  if (!done) return refused(std::string_view(&how, 1), done.error());
  const std::string outcome = std::to_string(static_cast<int>(done->outcome));
  say("{} {} {}", how, names, done->cancelled ? "cancelled" : outcome);
}

void Actor::finish(const LeasedTask& leased) {
  const std::uint64_t choice = below(20);
  if (choice < 3) {
    const std::int64_t asked = clock_ms();
    const Duration ttl = milliseconds(choice == 0 ? 15 : 3000);
    const auto done = coordinator_.extend(
        ExtendLease{.ns = kNamespace, .task = leased.task, .lease = leased.lease, .ttl = ttl});
    if (!done) refused("e", done.error());
    if (done) {
      say("e {} {} {} {}", core::to_text(leased.task), core::to_text(leased.lease), done->ttl.ms, asked);
    }
  }
  if (choice == 3) return;  // a worker that died
  if (choice == 4) {
    return settle('l', leased, [](Coordinator& it, const LeasedTask& held) {
      return it.release({.ns = kNamespace, .task = held.task, .lease = held.lease});
    });
  }
  if (choice < 8) {
    return settle('f', leased, [](Coordinator& it, const LeasedTask& held) {
      return it.fail({.ns = kNamespace, .task = held.task, .lease = held.lease, .reason = Blob("no luck")});
    });
  }
  settle('c', leased, [](Coordinator& it, const LeasedTask& held) {
    const std::string result = result_of(core::to_text(held.task), core::to_text(held.lease));
    return it.complete({.ns = kNamespace, .task = held.task, .lease = held.lease, .result = Blob(result)});
  });
}

void Actor::be_worker() {
  for (;;) {
    const std::int64_t asked = clock_ms();
    const Duration ttl = milliseconds(std::array{20, 200, 2000}[below(3)]);
    const auto leased = coordinator_.lease({.ns = kNamespace,
                                            .queues = {kKept, kPurged, kPaused},
                                            .worker = fmt::format("w{}", number_),
                                            .ttl = ttl});
    if (!leased) {
      refused("g", leased.error());
      ::usleep(500);
      continue;
    }
    if (!*leased) {
      ::usleep(500);  // nothing to do now
      continue;
    }
    const LeasedTask& held = **leased;
    say("g {} {} {} {} {} {}", core::to_text(held.task), core::to_text(held.lease), held.ttl.ms, asked,
        clock_ms(), hash_text(text_of(held.payload)));
    finish(held);
  }
}

void Actor::be_operator() {
  for (unsigned step = 0;; ++step) {
    const bool pause = step % 2 == 0;
    say("p? {:d}", pause);
    const Status done =
        pause ? coordinator_.pause({kNamespace, kPaused}) : coordinator_.resume({kNamespace, kPaused});
    if (done) say("p {:d}", pause);
    if (!done) refused("p", done.error());
    if (step % 3 == 0) {
      say("z?");
      const auto purged = coordinator_.purge({.ns = kNamespace, .queue = kPurged, .count_max = 20});
      if (purged) say("z {}", purged->count);
      if (!purged) refused("z", purged.error());
    }
    if (const auto made = coordinator_.make_snapshot(); made) {
      say("n");
    } else {
      refused("n", made.error());
    }
    ::usleep(1000);
  }
}

int run(const std::string& directory, std::uint64_t seed, unsigned round) {
  auto opened = Coordinator::open(directory, small_options());
  if (!opened) return complain(opened.error());
  Coordinator& coordinator = **opened;
  report(coordinator);
  std::vector<std::thread> threads;
  unsigned number = 0;
  const auto start = [&](void (Actor::*role)()) {
    threads.emplace_back([&coordinator, seed, round, number, role] {
      Actor actor(coordinator, seed, number, round);
      (actor.*role)();
    });
    ++number;
  };
  for (unsigned count = 0; count < kClients; ++count) start(&Actor::be_client);
  for (unsigned count = 0; count < kWorkers; ++count) start(&Actor::be_worker);
  start(&Actor::be_operator);
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace
}  // namespace baton::crash

int main(int argc, char** argv) {
  if (argc != 4) return 2;
#ifdef BATON_MUTANTS
  if (const char* number = std::getenv("BATON_MUTANT")) {
    baton::active_mutant = static_cast<baton::Mutant>(std::atoi(number));
  }
#endif
  return baton::crash::run(argv[1], std::strtoull(argv[2], nullptr, 10),
                           static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)));
}
