// What a service brings along: handlers for the messages that come, and a sink for those that go.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "stream/work.h"

namespace baton::stream {

// A message as a handler gets it.
struct Handling {
  const Work& work;
  InstanceId instance;   // who holds it
  std::stop_token lost;  // stopped when the lease is lost: then somebody else may be at it already
};

// What became of a message.
struct Outcome {
  enum class Kind : std::uint8_t {
    done,
    failed,
    given_back,  // nothing happened, and nothing counts: somebody will be given it again, at once
    reported,    // the handler has told the coordinator itself, as one that works in a transaction does
  };
  Kind kind = Kind::done;
  std::string error;  // of a failure, as are the others
  FailureReason reason = FailureReason::unknown;
  std::optional<FailurePolicy> policy;  // instead of the message's own
};
inline Outcome done() { return {}; }
inline Outcome given_back() { return {.kind = Outcome::Kind::given_back}; }
inline Outcome reported() { return {.kind = Outcome::Kind::reported}; }
inline Outcome failed(std::string error, FailureReason reason = FailureReason::unknown,
                      std::optional<FailurePolicy> policy = {}) {
  return {.kind = Outcome::Kind::failed, .error = std::move(error), .reason = reason, .policy = policy};
}

// One that throws has failed with what it threw. Messages of one stream come one after the other; those of
// different streams at the same time, on different threads.
using Handler = std::function<Outcome(const Handling&)>;

// Where messages of the outbox go: a broker, an HTTP server, a queue. Publishing may happen again after it
// was reported as failed, or after a crash, so a sink hands on the message's id for others to know it by.
// Implement it for Kafka by producing to topic `work.target` with the stream as key and acks=all, and
// returning when the delivery report is there; for HTTP by a POST with the id in an Idempotency-Key header,
// where 2xx is success, and 4xx a failure of reason validation_error, which no repetition mends.
class Sink {
 public:
  virtual ~Sink() = default;

  // On several threads at once, but for each stream in order: the next message of a stream comes when this
  // one is out. When `lost` is stopped, since the lease is lost or the processor drains, it should return
  // soon; whatever error it returns then is no failure, and the message goes back. So it does when the sink
  // is away (UNAVAILABLE, OUTCOME_UNKNOWN, DEADLINE_EXCEEDED, EXHAUSTED, CLOSED), or somebody else listens
  // there (UNSUPPORTED_VERSION). TOO_LARGE is final: such a message is tried twice at most. Any other error
  // is a failure of the message, so that one destination that refuses us (PERMISSION_DENIED) does not hold up
  // the others.
  virtual Status publish(const Work& work, std::stop_token lost) = 0;
};

}  // namespace baton::stream
