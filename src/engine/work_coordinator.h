// Streams in a coordinator of this very process: stream::WorkCoordinator on its log, without a database.
//
//   auto coordinator = baton::Coordinator::open("data");
//   baton::engine::WorkCoordinator streams(**coordinator);
//
// One for each instance. Each call may come from any thread, and is one entry of the log, or none.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/coordinator.h"
#include "stream/work_coordinator.h"

namespace baton::engine {

class WorkCoordinator final : public stream::WorkCoordinator {
 public:
  // `coordinator` outlives it.
  explicit WorkCoordinator(Coordinator& coordinator, std::string ns = "default");

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
  Result<bool> do_wait_for_work(Duration at_most, std::stop_token stop) override;
  Status do_leave(stream::InstanceId instance, std::stop_token stop) override;

  struct Done {
    core::WorkProcessed processed;
    std::vector<SharedBytes> bodies;
  };
  Result<Done> process(Result<core::ProcessWork> request, const std::stop_token& stop);
  Result<std::vector<stream::Work>> work_of(stream::InstanceId instance, const Done& done);
  std::vector<SharedBytes> bodies_of(const Done& done);
  Result<Bytes> read(const core::GivenMessage& given, const core::BlobRef& blob);
  Result<std::vector<stream::Verdict>> verdicts(Result<Done> done,
                                                core::ByLane<core::Verdicts> core::WorkProcessed::* of,
                                                stream::Lane lane);

  Coordinator& coordinator_;
  const std::string ns_;
  std::atomic<std::uint64_t> news_ = 0;  // heard of before the last call that asked for work
};

}  // namespace baton::engine
