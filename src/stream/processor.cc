#include "stream/processor.h"

#include <unistd.h>

#include <climits>
#include <string>
#include <system_error>

#include "stream/checks.h"
#include "stream/fresh_uuid.h"
#include "stream/shift.h"

namespace baton::stream {
namespace {

std::string this_host() {
  char name[HOST_NAME_MAX + 1] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

Result<std::unique_ptr<Processor>> Processor::start(WorkCoordinator& coordinator, ProcessorOptions options) {
  if (options.host.empty()) options.host = this_host();
  const Instance me{.id = {fresh_uuid()},
                    .service = options.service,
                    .host = options.host,
                    .process = static_cast<std::int32_t>(::getpid()),
                    .metadata = options.metadata};
  if (auto fits = check(me); !fits) return std::unexpected(fits.error());
  if (auto fits = check_seconds(options.lease, "a lease"); !fits) return std::unexpected(fits.error());
  if (auto fits = check_seconds(options.stale, "the time after which an instance is stale"); !fits)
    return std::unexpected(fits.error());
  if (options.handlers.empty() && !options.sink)
    return failure(Errc::invalid_request, "a processor needs a handler or a sink");
  if (options.threads < 1 || options.threads > kThreadsMax)
    return failure(Errc::invalid_request, "a processor has 1 to 1024 threads");
  if (options.in_hand_max < 1 || options.in_hand_max > static_cast<std::int32_t>(kItemsMax) ||
      options.messages_per_stream < 1)
    return failure(Errc::invalid_request, "a processor has 1 to 10000 messages in hand");
  if (options.poll <= Duration{} || options.backoff_min <= Duration{} ||
      options.backoff_min > options.backoff_max)
    return failure(Errc::invalid_request,
                   "the times after which a processor asks again (poll, backoff_min, backoff_max) are longer "
                   "than nothing, and backoff_max is no shorter than backoff_min");
  // A coordinator that is not there, or lets nobody in, is for whoever starts the service to hear of. One
  // whose answer was lost is there.
  const auto known = coordinator.heartbeat(me, options.stale);
  if (!known && known.error().code != Errc::outcome_unknown) return std::unexpected(known.error());
  try {
    return std::unique_ptr<Processor>(
        new Processor(std::make_unique<Shift>(coordinator, std::move(options), me.id)));
  } catch (const std::system_error& refused) {
    (void)coordinator.leave(me.id);
    return failure(Errc::exhausted, "the system has not enough threads for a processor: " +
                                        std::string(refused.what()) + "; give it fewer, or raise the limit");
  }
}

Processor::Processor(std::unique_ptr<Shift> shift) : shift_(std::move(shift)) {}
Processor::~Processor() { drain(); }
void Processor::drain() { shift_->drain(); }
ProcessorCounts Processor::counts() const { return shift_->counts(); }
InstanceId Processor::instance() const { return shift_->instance(); }

}  // namespace baton::stream
