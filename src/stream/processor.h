// An instance of a service at work: takes messages from a coordinator, has them handled or published, and
// reports what became of them.
//
//   auto processor = Processor::start(coordinator, {.service = "orders",
//                                                   .handlers = {{"OrderPlaced", take_payment}},
//                                                   .sink = &broker});
//   …
//   (*processor)->drain();
//
// Messages of one stream are handled in sequence, many streams at once on so many threads. After a failure
// what is behind the message in its stream goes back, since it may not come first. Leases are renewed
// meanwhile; a handler whose lease is lost is told through its token. Results are reported until the
// coordinator has heard them. While it cannot be reached, attempts get rarer, and work whose lease has ended
// is let go. An instance that was evicted, as after a long pause of its machine, begins anew under another
// id.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "stream/handler.h"
#include "stream/work_coordinator.h"

namespace baton::stream {

struct ProcessorOptions {
  std::string service;
  std::string host;                         // empty: this machine's name
  std::string metadata;                     // JSON, or empty
  std::map<std::string, Handler> handlers;  // of the inbox, by message type; none: the inbox is left alone
  Sink* sink = nullptr;                     // of the outbox; none: the outbox is left alone
  std::size_t threads = 4;
  // Messages, being handled or waiting for a thread. A claim has room for so many of each lane, so it may be
  // twice as many where both are full.
  std::int32_t in_hand_max = 300;
  std::int32_t messages_per_stream = 100;  // of one claim
  Duration lease = kLease;                 // whole seconds, as are the next two
  Duration stale = kStale;
  Duration poll = seconds(5);  // asks for work this often, if nothing wakes it, and before it is stale
  Duration backoff_min = milliseconds(100);  // while it gets no answer: longer each time
  Duration backoff_max = seconds(10);
  Duration drain_max = seconds(30);  // handlers that take longer are told to stop
  // A call that takes longer is given up when that time is over, or nothing is left to handle and report.
  Duration last_call_max = seconds(5);
  // Told of what went wrong and was no handler's doing; may be empty. It must neither block nor drain.
  std::function<void(const Error&)> trouble;
};

struct ProcessorCounts {
  std::uint64_t handled = 0;
  std::uint64_t failed = 0;
  std::uint64_t lost = 0;        // the lease ended before the message was reported
  std::uint64_t given_back = 0;  // by a handler, or without having been begun
};

inline constexpr std::size_t kThreadsMax = 1024;

class Processor {
 public:
  // Makes itself known, and begins at once; refused if the coordinator cannot be reached, or cannot work: a
  // database without the schema, a user without the rights. Coordinator and sink outlive the processor.
  static Result<std::unique_ptr<Processor>> start(WorkCoordinator& coordinator, ProcessorOptions options);
  ~Processor();  // drains
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  // For good: claims nothing more, lets handlers finish and reports them, gives back the rest and leaves.
  // From any thread but a handler's.
  void drain();
  ProcessorCounts counts() const;
  InstanceId instance() const;  // changes when it was evicted

 private:
  class Shift;
  explicit Processor(std::unique_ptr<Shift> shift);

  const std::unique_ptr<Shift> shift_;
};

}  // namespace baton::stream
