// Streams in a coordinator elsewhere: stream::WorkCoordinator over a client's connection.
//
//   baton::client::WorkCoordinator streams({.addresses = {"127.0.0.1:7077"}});
//
// A call whose connection broke is repeated on the next, since that does no harm; but one that claims is not,
// since it would claim more. A call that is stopped after it was sent ends with OUTCOME_UNKNOWN.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
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

 private:
  Result<stream::WorkBatch> do_process_work_batch(const stream::WorkBatchRequest& request,
                                                  std::stop_token stop) override;
  Result<stream::Standing> do_heartbeat(const stream::Instance& instance, Duration stale,
                                        std::stop_token stop) override;
  Result<std::vector<stream::Verdict>> do_store(stream::InstanceId instance, stream::Lane lane,
                                                const std::vector<stream::NewMessage>& messages,
                                                std::int32_t partitions, std::stop_token stop) override;
  Result<std::vector<stream::Work>> do_claim(stream::InstanceId instance, const stream::ClaimRequest& request,
                                             std::stop_token stop) override;
  Result<std::vector<stream::Verdict>> do_complete(stream::InstanceId instance, stream::Lane lane,
                                                   const std::vector<stream::Completion>& completions,
                                                   stream::WorkFlags flags, std::stop_token stop) override;
  Result<std::vector<stream::Verdict>> do_fail(stream::InstanceId instance, stream::Lane lane,
                                               const std::vector<stream::Failure>& failures,
                                               std::stop_token stop) override;
  Result<std::vector<stream::Verdict>> do_renew(stream::InstanceId instance, stream::Lane lane,
                                                const std::vector<stream::Held>& held, Duration lease,
                                                std::stop_token stop) override;
  Result<std::vector<stream::Verdict>> do_release(stream::InstanceId instance, stream::Lane lane,
                                                  const std::vector<stream::Held>& held,
                                                  std::stop_token stop) override;
  Result<std::vector<stream::Work>> do_resume(stream::InstanceId instance, std::stop_token stop) override;
  // For the instance that asked for work last.
  Result<bool> do_wait_for_work(Duration at_most, std::stop_token stop) override;
  Status do_leave(stream::InstanceId instance, std::stop_token stop) override;

  enum class Says : std::uint8_t { report, claim };
  Result<stream::WorkBatch> say(Status checked, const Command& command, const std::stop_token& stop,
                                Says says = Says::report);

  Result<wire::RespValue> ask(const Command& command, const std::stop_token& stop, Says says);

  void asks_for_work(stream::InstanceId instance);

  const std::unique_ptr<Client> own_;
  Client& client_;
  std::mutex mutex_;
  std::condition_variable_any asks_;
  std::optional<stream::InstanceId> asking_;
  std::int64_t asked_at_ = 0;  // on the clock of now_ms()
};

}  // namespace baton::client
