#include "cli/meeting_point.h"

#include <cstdlib>
#include <filesystem>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/quantities.h"
#include "pipeline/directory_coordinator.h"
#include "pipeline/graph.h"
#include "pipeline/pulse.h"
#include "pipeline/redis_coordinator.h"
#include "pipeline/report.h"
#include "pipeline/server_coordinator.h"

namespace baton::cli {
namespace {

using Made = Result<std::unique_ptr<pipeline::DistributedCoordinator>>;

Made meet_at_redis(std::string_view where, const std::string& run, Duration lease) {
  pipeline::RedisCoordinatorOptions options{.run = run, .lease = lease};
  if (const std::size_t at = where.find('@'); at != where.npos) {
    options.password = where.substr(0, at);
    if (options.password.starts_with(':')) options.password.erase(0, 1);
    where.remove_prefix(at + 1);
  }
  const std::size_t colon = where.rfind(':');
  options.host = where.substr(0, colon);
  if (colon != where.npos) {
    const auto port = read_number(where.substr(colon + 1), 1, 65'535);
    if (!port)
      return failure(Errc::invalid_request,
                     "the port of redis://" + std::string(where) + ": " + port.error().message);
    options.port = static_cast<int>(*port);
  }
  return std::make_unique<pipeline::RedisCoordinator>(options);
}

// A folder of a run is made; where it lies is not, for that would rather be a typing error.
Status check_folder(const std::string& folder) {
  if (folder.empty())
    return failure(Errc::invalid_request, "dir: needs the folder in which the run is to be, as dir:/srv/run");
  const std::filesystem::path parent = std::filesystem::absolute(folder).parent_path();
  std::error_code absent;
  if (std::filesystem::is_directory(parent, absent)) return {};
  return failure(Errc::not_found,
                 "dir:" + folder + " is to be in " + parent.string() + ", which is no folder");
}

}  // namespace

void take_what_was_handed_over(MeetingPoint& point) {
  const char* where = std::getenv(kHandedOver);
  if (where == nullptr) return;
  point.connection.addresses = {where};
  ::unsetenv(kHandedOver);
}

Made meet(const MeetingPoint& point, const std::string& run) {
  const std::string address = point.where();
  const std::string_view where = address;
  if (where.starts_with("dir:")) {
    if (auto there = check_folder(std::string(where.substr(4))); !there)
      return std::unexpected(there.error());
    return std::make_unique<pipeline::DirectoryCoordinator>(pipeline::DirectoryCoordinatorOptions{
        .directory = std::string(where.substr(4)), .lease = point.lease});
  }
  if (where.starts_with("redis://")) return meet_at_redis(where.substr(8), run, point.lease);
  auto options = client_options(point.connection);
  if (!options) return std::unexpected(options.error());
  return std::make_unique<pipeline::ServerCoordinator>(
      pipeline::ServerCoordinatorOptions{.client = *options, .run = run, .lease = point.lease});
}

Status check_part(const MeetingPoint& point, const std::vector<std::string>& capabilities) {
  constexpr Duration kLeaseMin = milliseconds(100);
  if (point.lease < kLeaseMin)
    return failure(Errc::invalid_request,
                   "--lost-after is 100ms at least, or everybody would be lost at once");
  for (const std::string& name : capabilities) {
    if (!name.empty() && !pipeline::is_capability(name))
      return failure(Errc::invalid_request, "--cap '" + name +
                                                "' is no capability: 1 to 128 printable ASCII characters "
                                                "without spaces; several are separated by commas");
  }
  return {};
}

int cannot_meet(const Error& error, Format format) {
  const int code = complain_of_connection(error, format);
  if (error.code == Errc::permission_denied || error.code == Errc::invalid_request) return code;
  return pipeline::is_transient(error.code) ? pipeline::exit_code(pipeline::RunOutcome::coordination_lost)
                                            : pipeline::kExitInvalid;
}

}  // namespace baton::cli
