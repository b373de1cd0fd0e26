// Publishes the outbox to a coordinator's queues: each message becomes a task.
//
//   TaskSink sink({.addresses = {"127.0.0.1:7077"}});
//
// The destination is "queue", or "namespace/queue". The task's payload is the message's data and its key the
// message's id, so that what is published again is the same task, as long as the coordinator keeps that one
// (core::Rules::retention_age after its end). Data over the coordinator's limit for payloads is TOO_LARGE.
// Tasks of a queue may run at the same time, so the order of a stream ends here.
#pragma once

#include "client/client.h"
#include "publish/destination.h"
#include "stream/handler.h"

namespace baton::publish {

class TaskSink final : public stream::Sink {
 public:
  explicit TaskSink(client::ClientOptions options) : clients_(std::move(options)) {}

  Status publish(const stream::Work& work, std::stop_token lost) override;

 private:
  ByNamespace<client::Client> clients_;
};

}  // namespace baton::publish
