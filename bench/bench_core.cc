// What deciding, encoding and applying cost on one thread without a disk, and whether that cost grows with
// the number of tasks that wait. Usage: bench_core [million tasks, default 10]
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/apply.h"
#include "core/decide.h"
#include "core/event_codec.h"
#include "core/lease/lease_manager.h"

namespace {

using namespace baton;
using namespace baton::core;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A turn is measured in time on the processor, so that a busy machine does not look like a stall of ours.
double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::size_t resident_bytes() {
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * 4096;
}

// The authority without a log: what the engine does for each request, minus the disk.
class Bare {
 public:
  Bare() { record(EpochStarted{.key = {1, 2}}); }

  Reply ask(const Request& request) {
    const Moment at{now_, kEpoch, state_.last + 1, rules_};
    Decision decision = decide(state_, workers_, request, at);
    if (auto* append = std::get_if<Append>(&decision)) {
      record(append->event);
      return std::move(append->reply);
    }
    if (auto* reject = std::get_if<Reject>(&decision)) {
      std::fprintf(stderr, "refused: %.*s\n", int(reject->message.size()), reject->message.data());
      std::exit(1);
    }
    return std::get<Reply>(decision);
  }

  void turn(std::int64_t ms) { now_ = now_ + milliseconds(ms); }
  std::uint64_t events() const { return events_; }
  const State& state() const { return state_; }
  double worst_turn_ms = 0;

 private:
  void record(const Event& event) {
    body_.clear();
    encode(event, body_);
    apply(state_, event, {state_.last + 1, kEpoch, now_, static_cast<std::uint32_t>(body_.size())});
    ++events_;
  }

  static constexpr Epoch kEpoch = 7;
  State state_;
  WorkerRegistry workers_;
  Rules rules_;
  Instant now_{1'000'000};
  Bytes body_;
  std::uint64_t events_ = 0;
};

constexpr std::uint64_t kTurn = 4096;  // requests the loop takes at once, at most

void fill(Bare& bare, std::uint64_t count, const SubmitTask& submit, std::vector<TaskId>* ids) {
  for (std::uint64_t done = 0; done < count;) {
    const double start = processor_ms();
    for (std::uint64_t i = 0; i < kTurn && done < count; ++i, ++done) {
      const Reply reply = bare.ask(submit);
      if (ids != nullptr) ids->push_back(std::get<Submitted>(reply).task);
    }
    bare.turn(1);
    bare.worst_turn_ms = std::max(bare.worst_turn_ms, processor_ms() - start);
  }
}

// Whole lives in queue order at a steady number of waiting tasks: submit, lease the oldest, complete it.
double lives_in_order(Bare& bare, const SubmitTask& submit, const LeaseTask& lease, std::uint64_t lives) {
  const std::uint64_t before = bare.events();
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < lives; ++i) {
    bare.ask(submit);
    const auto granted = std::get<Granted>(bare.ask(lease));
    bare.ask(CompleteTask{.ns = "bench", .task = granted.task, .lease = granted.lease});
    if (i % kTurn == 0) {
      bare.turn(1);
      bare.ask(PurgeQueue{.ns = "bench", .queue = "q"});
    } else if (i % 256 == 0) {
      bare.ask(PurgeQueue{.ns = "bench", .queue = "q"});
    }
  }
  return seconds_since(start) / static_cast<double>(bare.events() - before);
}

// Cancels tasks all over the queue and submits as many anew. The victims are drawn beforehand, so that the
// memory the drawing touches is not counted.
double by_random_id(Bare& bare, const SubmitTask& submit, std::vector<TaskId>& ids) {
  std::uint64_t random = 88172645463325252u;
  const std::size_t count = std::min<std::size_t>(ids.size() / 2, 500'000);
  for (std::size_t i = 0; i < count; ++i) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    std::swap(ids[i], ids[i + random % (ids.size() - i)]);
  }
  const std::uint64_t before = bare.events();
  const auto start = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    bare.ask(CancelTask{.ns = "bench", .task = ids[i]});
    ids[i] = std::get<Submitted>(bare.ask(submit)).task;
    if (i % 256 == 0) bare.ask(PurgeQueue{.ns = "bench", .queue = "q"});
  }
  return seconds_since(start) / static_cast<double>(bare.events() - before);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t many = static_cast<std::uint64_t>((argc > 1 ? std::atof(argv[1]) : 10) * 1e6);
  const SubmitTask submit{.ns = "bench", .queue = "q", .payload = Blob(Bytes(200, std::byte{7}))};
  const LeaseTask lease{.ns = "bench", .queues = {"q"}, .worker = "w"};

  double order[2], random[2];
  for (const bool large : {false, true}) {
    const std::uint64_t tasks = large ? many : 10'000;
    std::vector<TaskId> ids;
    ids.reserve(tasks);
    Bare bare;
    const std::size_t before = resident_bytes();
    const auto start = Clock::now();
    fill(bare, tasks, submit, &ids);
    const double fill_s = seconds_since(start);
    const std::size_t used = resident_bytes() - before - ids.capacity() * sizeof(TaskId);
    std::printf(
        "%8lu waiting: submit %.2f M events/s, %.1f bytes a task, longest turn of %lu submits %.1f ms\n",
        tasks, static_cast<double>(tasks) / fill_s / 1e6,
        static_cast<double>(used) / static_cast<double>(tasks), kTurn, bare.worst_turn_ms);
    // Several rounds where a round is short, so that both sizes run for about as long.
    const int rounds = large ? 1 : 100;
    random[large] = 0;
    for (int round = 0; round < rounds; ++round) random[large] += by_random_id(bare, submit, ids) / rounds;
    order[large] = lives_in_order(bare, submit, lease, 1'000'000);
    std::printf("%8lu waiting: in queue order %.2f M events/s, by random id %.2f M events/s\n", tasks,
                1e-6 / order[large], 1e-6 / random[large]);
  }
  {
    // Every task under a key of its own, so that the map of keys grows as well.
    Bare bare;
    double worst = 0;
    SubmitTask keyed = submit;
    for (std::uint64_t done = 0; done < many;) {
      const double start = processor_ms();
      for (std::uint64_t i = 0; i < kTurn && done < many; ++i, ++done) {
        keyed.key = "key-" + std::to_string(done);
        bare.ask(keyed);
      }
      bare.turn(1);
      worst = std::max(worst, processor_ms() - start);
    }
    std::printf("%8lu waiting under keys: longest turn of %lu submits %.1f ms\n", many, kTurn, worst);
  }
  std::printf("cost with %lu waiting / with 10000: in queue order %.2f, by random id %.2f\n", many,
              order[1] / order[0], random[1] / random[0]);
}
