// Takes tasks and has handlers work on them, in so many threads, under leases that are extended meanwhile.
//
//   auto worker = Worker::start(client, {.name = "mailer-1", .slots = 8, .handlers = {{"mail", send_mail}}});
//   …
//   (*worker)->drain();
//
// A handler returns the result, or an error: the attempt has failed and is tried again as the task's policy
// says; after INVALID_REQUEST, TOO_LARGE or UNSUPPORTED_VERSION, which no repetition mends, it is final;
// after CLOSED the task is given back as if it had not been taken. One that throws has failed with what it
// threw. The stop token tells it that its lease was lost or the task cancelled: then nobody wants the result,
// and what it returns is dropped. If the process dies, the leases expire and somebody else gets the tasks;
// whatever a handler does to the outside world may thus happen more than once, and the fence is there to
// tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "client/client.h"

namespace baton::client {

struct Job {
  std::string task;
  std::string fence;  // grows with every grant of any task; compare it where you write
  std::string queue;
  std::string payload;
  std::uint32_t attempt = 0;
};
using Handler = std::function<Result<std::string>(const Job& job, std::stop_token stop)>;

struct WorkerOptions {
  std::string name;
  std::size_t slots = 1;                    // tasks at a time, each in a thread
  std::map<std::string, Handler> handlers;  // by queue; 16 at most
  std::vector<std::string> capabilities;
  Duration ttl = seconds(30);  // of the leases; they are extended after a third of it
  Duration wait = seconds(2);  // for a task, before asking again, but no more than a third of ttl
  Duration heartbeat = seconds(10);
  std::uint64_t tasks_max = 0;  // to be begun, then it drains of its own accord; 0: any number
  // Told, now and again, that there is nothing to do: no task came and none is under way. May be empty; on
  // any thread, so it must neither block nor drain.
  std::function<void()> idle;
  // Told what became of a task whose handler failed: whether it is tried again, and when. May be empty, and
  // must not block.
  std::function<void(const std::string& task, const Verdict&)> failed;
  // Told of what went wrong and was no handler's doing, LEASE_LOST and the task among it; may be empty. On
  // any thread, so it must neither block nor drain.
  std::function<void(const Error&)> trouble;
};

// What became of the tasks that were taken.
struct WorkerCounts {
  std::uint64_t begun = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t lost = 0;      // the lease ended before the handler did, or the outcome came too late
  std::uint64_t released = 0;  // given back without having been begun
};

inline constexpr std::size_t kSlotsMax = 1024;

class Worker {
 public:
  // Begins at once. The client outlives the worker.
  static Result<std::unique_ptr<Worker>> start(Client& client, WorkerOptions options);
  ~Worker();  // drains
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // For good: takes no further task, gives back what was not begun, and returns when the last handler has.
  // From any thread but a handler's.
  void drain();
  bool is_draining() const;  // or has
  WorkerCounts counts() const;

 private:
  class Shift;
  explicit Worker(std::shared_ptr<Shift> shift);

  const std::shared_ptr<Shift> shift_;  // calls under way may come back to it after it was drained
};

}  // namespace baton::client
