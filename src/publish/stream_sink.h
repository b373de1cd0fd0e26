// Publishes the outbox into inboxes of a coordinator: each message becomes one of another service, with its
// id and in its stream.
//
//   StreamSink sink({.addresses = {"127.0.0.1:7077"}});
//
// The destination is "service", or "namespace/service". A message that is published again is known there by
// its id, and those of a stream are stored in the order in which they come, so order goes on from service to
// service.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "client/work_coordinator.h"
#include "publish/destination.h"
#include "stream/handler.h"

namespace baton::publish {

class StreamSink final : public stream::Sink {
 public:
  explicit StreamSink(client::ClientOptions options) : coordinators_(std::move(options)) {}
  ~StreamSink() override;

  Status publish(const stream::Work& work, std::stop_token lost) override;

 private:
  // A service that messages go to.
  struct There {
    stream::WorkCoordinator* coordinator = nullptr;
    stream::Instance self;  // what we are there
  };
  There find(const std::string& target);
  void start_again_at(const std::string& target, const stream::Instance& evicted);

  ByNamespace<client::WorkCoordinator> coordinators_;
  std::mutex mutex_;
  std::map<std::string, There> services_;  // by target
};

}  // namespace baton::publish
