// Publishes the outbox to a coordinator's queues: each message becomes a task.
//
//   TaskSink sink({.addresses = {"127.0.0.1:7077"}});
//
// The destination is "queue", or "namespace/queue". The task's payload is the message's data and its key the
// message's id, so that what is published again is the same task, as long as the coordinator keeps that one
// (core::Rules::retention_age after its end). Data over the coordinator's limit for payloads is TOO_LARGE.
// Tasks of a queue may run at the same time, so the order of a stream ends here.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "client/client.h"
#include "stream/handler.h"

namespace baton::publish {

class TaskSink final : public stream::Sink {
 public:
  explicit TaskSink(client::ClientOptions options) : options_(std::move(options)) {}

  Status publish(const stream::Work& work, std::stop_token lost) override;

 private:
  client::Client& client_for(const std::string& ns);

  const client::ClientOptions options_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<client::Client>> clients_;  // by namespace
};

}  // namespace baton::publish
