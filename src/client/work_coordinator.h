// Streams in a coordinator elsewhere: stream::WorkCoordinator over a client's connection.
//
//   baton::client::WorkCoordinator streams({.addresses = {"127.0.0.1:7077"}});
//
// Every call may be repeated, so one whose connection broke is repeated on the next. A call is stopped only
// before it is sent.
#pragma once

#include <memory>
#include <vector>

#include "client/client.h"
#include "stream/work_coordinator.h"

namespace baton::client {

class Command;

class WorkCoordinator final : public stream::WorkCoordinator {
 public:
  explicit WorkCoordinator(const ClientOptions& options)
      : own_(std::make_unique<Client>(options)), client_(*own_) {}
  // Over the connection of a client that outlives it.
  explicit WorkCoordinator(Client& client) : client_(client) {}

  Result<stream::WorkBatch> process_work_batch(const stream::WorkBatchRequest& request,
                                               std::stop_token stop = {}) override;
  Result<stream::Standing> heartbeat(const stream::Instance& instance, Duration stale = stream::kStale,
                                     std::stop_token stop = {}) override;
  Result<std::vector<stream::Verdict>> store(stream::InstanceId instance, stream::Lane lane,
                                             const std::vector<stream::NewMessage>& messages,
                                             std::int32_t partitions = stream::kPartitions,
                                             std::stop_token stop = {}) override;
  Result<std::vector<stream::Work>> claim(stream::InstanceId instance,
                                          const stream::ClaimRequest& request = {},
                                          std::stop_token stop = {}) override;
  Result<std::vector<stream::Verdict>> complete(stream::InstanceId instance, stream::Lane lane,
                                                const std::vector<stream::Completion>& completions,
                                                stream::WorkFlags flags = stream::WorkFlags::none,
                                                std::stop_token stop = {}) override;
  Result<std::vector<stream::Verdict>> fail(stream::InstanceId instance, stream::Lane lane,
                                            const std::vector<stream::Failure>& failures,
                                            std::stop_token stop = {}) override;
  Result<std::vector<stream::Verdict>> renew(stream::InstanceId instance, stream::Lane lane,
                                             const std::vector<stream::Held>& held,
                                             Duration lease = stream::kLease,
                                             std::stop_token stop = {}) override;
  Result<std::vector<stream::Verdict>> release(stream::InstanceId instance, stream::Lane lane,
                                               const std::vector<stream::Held>& held,
                                               std::stop_token stop = {}) override;
  Result<std::vector<stream::Work>> resume(stream::InstanceId instance, std::stop_token stop = {}) override;
  // Whoever wants to wait lets STREAM_CLAIM wait; here there is nothing that wakes.
  Result<bool> wait_for_work(Duration at_most, std::stop_token stop = {}) override;
  Status leave(stream::InstanceId instance, std::stop_token stop = {}) override;

 private:
  Result<stream::WorkBatch> say(Status checked, const Command& command, const std::stop_token& stop);

  const std::unique_ptr<Client> own_;
  Client& client_;
};

}  // namespace baton::client
