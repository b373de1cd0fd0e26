#include "tests/crash/speech.h"

#include <unistd.h>

#include "base/check.h"
#include "tests/crash/vocabulary.h"

namespace baton::crash {
namespace {

std::string bytes_hash(Coordinator& coordinator, const core::BlobRef& blob) {
  if (blob.length == 0) return "-";
  const auto bytes = coordinator.read(blob);
  return bytes ? hash_text(text_of(*bytes)) : "!";
}

void report_task(Coordinator& coordinator, const core::TaskView& task) {
  const bool leased = task.state == core::TaskState::leased;
  say("T {} {} {} {} {} {} {} {} {}", core::to_text(task.id), task.key.empty() ? "-" : task.key, task.queue,
      core::name_of(task.state), task.attempt, bytes_hash(coordinator, task.payload),
      bytes_hash(coordinator, task.note),
      leased ? fmt::format("{:x}-{:x}", task.lease_epoch, task.lease) : "-",
      task.retry_of.lsn == 0 ? "-" : core::to_text(task.retry_of));
}

}  // namespace

void say_line(std::string line) {
  line += '\n';
  BATON_CHECK(::write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
}

CoordinatorOptions small_options() {
  CoordinatorOptions options;
  options.log = {.segment_bytes = 64 << 10, .batch_bytes = 16 << 10};
  options.engine.digest_every = 64;
  options.engine.cache_bytes = 16 << 10;  // most payloads are read back from the log
  options.housekeeping.snapshot_every_bytes = 64 << 10;
  return options;
}

namespace {

// A call that is refused here means that the log has failed: another thread is about to end the process.
template <class T>
T answered(Result<T> answer) {
  BATON_CHECK(answer || answer.error().code == Errc::closed);
  while (!answer) ::pause();
  return std::move(*answer);
}

}  // namespace

void report(Coordinator& coordinator) {
  std::size_t count = 0;
  core::ListTasks query{.ns = kNamespace, .count_max = core::kListTasksMax};
  do {
    const auto page = answered(coordinator.list(query));
    for (const core::TaskView& task : page.tasks) report_task(coordinator, task);
    count += page.tasks.size();
    query.from = page.next;
  } while (query.from != 0);
  core::ListQueues queues{.ns = kNamespace};
  do {
    const auto page = answered(coordinator.queues(queues));
    for (const core::QueueView& queue : page.queues) {
      if (queue.paused) say("Q {}", queue.name);
    }
    queues.after = page.next;
  } while (!queues.after.empty());
  say("R {} {} {} {}", clock_ms(), count, coordinator.recovery().replayed, coordinator.recovery().snapshot);
}

int complain(const Error& error) {
  fmt::print(stderr, "{}: {}\n", word(error.code), error.message);
  return 1;
}

}  // namespace baton::crash
