// Calls of stream::WorkCoordinator as requests to the core: checked, and with their texts as blobs, so that
// little is left to do on the loop. And the other way: what was handed out, as work.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/stream/work_request.h"
#include "engine/engine.h"
#include "stream/work_coordinator.h"

namespace baton::engine {

Result<core::ProcessWork> turn_of(std::string ns, const stream::WorkBatchRequest& request);
Result<core::ProcessWork> heartbeat_of(std::string ns, const stream::Instance& instance, Duration stale);
Result<core::ProcessWork> store_of(std::string ns, stream::InstanceId instance, stream::Lane lane,
                                   const std::vector<stream::NewMessage>& messages, std::int32_t partitions);
Result<core::ProcessWork> claim_of(std::string ns, stream::InstanceId instance,
                                   const stream::ClaimRequest& request);
Result<core::ProcessWork> completion_of(std::string ns, stream::InstanceId instance, stream::Lane lane,
                                        const std::vector<stream::Completion>& completions,
                                        stream::WorkFlags flags);
Result<core::ProcessWork> failure_of(std::string ns, stream::InstanceId instance, stream::Lane lane,
                                     const std::vector<stream::Failure>& failures);
Result<core::ProcessWork> renewal_of(std::string ns, stream::InstanceId instance, stream::Lane lane,
                                     const std::vector<stream::Held>& held, Duration lease);

// Of an instance. Errc::lease_lost or not_found if it may not ask.
Result<core::Slot> service_of(const core::State& state, const std::string& ns, stream::InstanceId instance);
// Whatever the instance holds and has not reported on, by whole streams: one, and more while there is room
// for the next message. Likewise.
struct HeldLook {
  std::uint64_t from = 0;  // cursor
  std::size_t messages_max = SIZE_MAX;
  std::size_t bytes_max = SIZE_MAX;
};
struct HeldPage {
  std::vector<core::GivenMessage> messages;
  std::uint64_t next = 0;  // where to go on, 0 at the end
};
Result<HeldPage> held_by(const core::State& state, const std::string& ns, stream::InstanceId instance,
                         const HeldLook& look = {});

// Reads bytes that are not at hand any more.
using ReadBlob = std::function<Result<Bytes>(const core::BlobRef&)>;
Result<stream::Work> work_of(const core::GivenMessage& given, const SharedBytes& body, const ReadBlob& read);
// What an instance says of work that it cannot be given: a message whose body is unreadable has failed, and
// those behind it in its stream are given back. They are marked among `given`.
core::ProcessWork unreadable_of(std::string ns, stream::InstanceId instance,
                                std::span<const core::GivenMessage> given, std::size_t which,
                                const Error& why, std::vector<bool>& is_left_out);
stream::WorkBatch batch_of(const core::WorkProcessed& processed);  // without the work

}  // namespace baton::engine
