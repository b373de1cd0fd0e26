// Where the master and the workers of a pipeline meet, as people name it: HOST:PORT of a baton server,
// dir:FOLDER, or redis://HOST:PORT.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/connection.h"
#include "pipeline/coordinator.h"

namespace baton::cli {

struct MeetingPoint {
  Connection connection;  // with the place as its address
  Duration lease = pipeline::kLostAfter;
  std::string blobs;  // a folder that all machines share; empty: what the place itself has for them

  std::string where() const { return connection.addresses.front(); }
  bool is_redis() const { return where().starts_with("redis://"); }
  bool is_server() const { return !where().starts_with("dir:") && !is_redis(); }
};

// In the environment of a worker that a master has started, where it is to meet: everybody would see the
// password of a Redis in the list of processes, and whatever the worker runs would see it as BATON_CONNECT.
inline constexpr char kHandedOver[] = "BATON_MEETING_POINT";
// Nothing that is started from then on has it.
void take_what_was_handed_over(MeetingPoint& point);

Result<std::unique_ptr<pipeline::DistributedCoordinator>> meet(const MeetingPoint& point,
                                                               const std::string& run);

// What makes no sense about how a machine with these capabilities is to take part.
Status check_part(const MeetingPoint& point, const std::vector<std::string>& capabilities);

// Says why not. Returns the exit code of a master or a worker.
int cannot_meet(const Error& error, Format format = Format::text);

}  // namespace baton::cli
