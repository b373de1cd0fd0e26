#include "pipeline/directory_coordinator.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "pipeline/graph.h"
#include "pipeline/pause.h"
#include "pipeline/random_name.h"
#include "pipeline/shared_files.h"
#include "pipeline/wire_text.h"

namespace baton::pipeline {
namespace {

std::unexpected<Error> stopped() { return failure(Errc::closed, "stopped"); }

std::string padded(std::uint64_t number, std::size_t digits) {
  std::string text = std::to_string(number);
  return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

// The name of an assignment that waits, so that names in order are assignments in order.
struct EntryName {
  std::string place;  // P-NUMBER
  std::uint32_t attempt = 1;
  std::string module;  // as a file name

  std::string text() const { return place + "-" + padded(attempt, 6) + "-" + module; }
};
constexpr std::size_t kPlaceLength = 1 + 1 + 12;

EntryName entry_name(const ModuleAssignment& assignment, std::uint64_t number) {
  return {std::to_string(9 - std::min(assignment.priority, 9U)) + "-" + padded(number, 12), 1,
          as_file_name(assignment.module)};
}
// Of an entry, or of a lease: the same with a name behind it.
EntryName parsed(const std::string& name) {
  EntryName entry{name.substr(0, kPlaceLength),
                  static_cast<std::uint32_t>(std::stoul(name.substr(kPlaceLength + 1, 6))),
                  name.substr(kPlaceLength + 8)};
  if (const std::size_t dash = entry.module.find('-'); dash != std::string::npos) entry.module.erase(dash);
  return entry;
}

// What is kept of a worker.
struct Presence {
  WorkerRegistration registration;
  bool was_active = false;
  bool has_left = false;
  std::string current_module;
};
BATON_FIELDS(Presence, registration, was_active, has_left, current_module)

}  // namespace

class DirectoryCoordinator::Folder {
 public:
  explicit Folder(const DirectoryCoordinatorOptions& options)
      : options_(options), files_(options.directory) {}

  Status ready(const std::stop_token& stop) {
    if (stop.stop_requested()) return stopped();
    const std::lock_guard lock(mutex_);
    if (is_ready_) return {};
    for (const char* folder : {"workers", "modules", "queue", "leased", "ended", "results", "said"}) {
      if (auto made = files_.make_folder(folder); !made) return made;
    }
    is_ready_ = true;
    return {};
  }

  // A pause that gets longer while nothing happens. False: stopped.
  bool wait(Duration& delay, const std::stop_token& stop) const {
    if (pause(delay, stop)) return false;
    delay = std::min(delay + Duration{delay.ms / 2 + 1}, Duration{options_.poll.ms * 10});
    return true;
  }

  // Names of one writer are in the order they were made in.
  std::string next_said() {
    const std::lock_guard lock(mutex_);
    std::string number = std::to_string(++said_);
    return writer_ + "-" + std::string(12 - std::min<std::size_t>(12, number.size()), '0') + number;
  }

  // What time has brought about.
  Status expire() {
    for (const std::string& lease : files_.list("leased")) {
      const auto age = files_.age("leased/" + lease);
      if (!age) return std::unexpected(age.error());
      if (!*age || **age <= options_.lease) continue;
      const auto text = files_.read("leased/" + lease);
      if (!text) continue;  // somebody else was faster
      const auto assignment = from_text<ModuleAssignment>(*text);
      if (!assignment) return failure(Errc::corrupt, "leased/" + lease + ": " + assignment.error().message);
      EntryName entry = parsed(lease);
      if (entry.attempt < assignment->attempts_max) {
        ++entry.attempt;
        if (auto moved = files_.rename("leased/" + lease, "queue/" + entry.text()); !moved)
          return std::unexpected(moved.error());
        continue;
      }
      SerializedModuleResult lost{
          .module = assignment->module, .attempt = entry.attempt, .status = ModuleStatus::failed};
      lost.failure = ModuleFailure{.kind = FailureKind::worker_lost,
                                   .message = "its worker fell silent during attempt " +
                                              std::to_string(entry.attempt) + ", the last one it had"};
      // Under a name of its own: a result that comes too late must not be taken for this one.
      if (auto written = files_.write("results/" + lease + ".lost", to_text(lost)); !written) return written;
      if (auto moved = files_.rename("leased/" + lease, "ended/" + lease + ".lost"); !moved)
        return std::unexpected(moved.error());
    }
    return {};
  }

  Status admit(const WorkerRegistration& worker) const {
    const auto text = files_.read("run");
    if (!text) return text.error().code == Errc::not_found ? Status{} : Status(std::unexpected(text.error()));
    const auto opening = from_text<RunOpening>(*text);
    if (!opening || opening->fingerprint == worker.fingerprint) return {};
    return failure(Errc::conflict, "worker " + std::to_string(worker.index) +
                                       " has another pipeline than the master: run the same program, with "
                                       "the same options, on all machines");
  }

  Result<std::optional<Closed>> closed() const {
    auto reason = files_.read("closed");
    if (reason) return Closed{std::move(*reason)};
    if (reason.error().code == Errc::not_found) return std::optional<Closed>();
    return std::unexpected(reason.error());
  }

  // Which lease brought the result of a module; empty: there is none.
  std::string ended(const std::string& module) const {
    const std::string wanted = as_file_name(module);
    for (const std::string& name : files_.list("ended")) {
      if (name == "own-" + wanted || (!name.starts_with("own-") && parsed(name).module == wanted))
        return name;
    }
    return {};
  }
  Result<SerializedModuleResult> result(const std::string& name) const {
    auto text = files_.read("results/" + name);
    if (!text) return std::unexpected(text.error());
    return from_text<SerializedModuleResult>(*text);
  }

  Result<std::optional<Presence>> presence(std::int32_t index) const {
    auto text = files_.read("workers/" + std::to_string(index));
    if (!text && text.error().code == Errc::not_found) return std::optional<Presence>();
    if (!text) return std::unexpected(text.error());
    auto presence = from_text<Presence>(*text);
    if (!presence) return std::unexpected(presence.error());
    return std::optional(std::move(*presence));
  }
  Status keep(const Presence& presence) const {
    return files_.write("workers/" + std::to_string(presence.registration.index), to_text(presence));
  }
  Result<Duration> silence(std::int32_t index) const {
    auto age = files_.age("workers/" + std::to_string(index));
    if (!age) return std::unexpected(age.error());
    return age->value_or(days(1));
  }

  std::optional<ModuleAssignment> assignment(const std::string& entry) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = assignments_.find(parsed(entry).module); known != assignments_.end())
        return known->second;
    }
    const auto text = files_.read("queue/" + entry);
    if (!text) return std::nullopt;
    auto assignment = from_text<ModuleAssignment>(*text);
    if (!assignment) return std::nullopt;
    const std::lock_guard lock(mutex_);
    return assignments_.emplace(parsed(entry).module, std::move(*assignment)).first->second;
  }

  std::optional<Assigned> take(const WorkerRegistration& worker) {
    for (const std::string& entry : files_.list("queue")) {
      const auto wanted = assignment(entry);
      if (!wanted || !covers(worker.capabilities, wanted->required_capabilities)) continue;
      // Its age is that of the lease from now on, so it has to be young before it is one.
      const std::string lease = entry + "-" + as_file_name(worker.session) + "." + random_name();
      if (!files_.touch("queue/" + entry)) continue;
      if (const auto taken = files_.rename("queue/" + entry, "leased/" + lease); !taken || !*taken) continue;
      return Assigned{*wanted, parsed(entry).attempt, lease};
    }
    return std::nullopt;
  }

  const DirectoryCoordinatorOptions options_;
  const SharedFiles files_;
  std::mutex mutex_;
  bool is_ready_ = false;
  std::uint64_t numbers_ = 0;
  const std::string writer_ = random_name();
  std::uint64_t said_ = 0;
  std::set<std::string> told_;                           // by next_results
  std::map<std::string, ModuleAssignment> assignments_;  // they never change
};

DirectoryCoordinator::DirectoryCoordinator(const DirectoryCoordinatorOptions& options)
    : folder_(std::make_unique<Folder>(options)), blobs_(options.directory + "/blobs") {}
DirectoryCoordinator::~DirectoryCoordinator() = default;

Status DirectoryCoordinator::open_run(const RunOpening& opening, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  const SharedFiles& files = folder_->files_;
  if (const auto master = files.read("master"); master && *master != opening.session) {
    const auto age = files.age("master");
    if (!age) return std::unexpected(age.error());
    if (*age && **age <= folder_->options_.lease)
      return failure(Errc::conflict,
                     "this run has a master that is still there: give each run a folder of its own");
  }
  if (files.exists("closed"))
    return failure(Errc::conflict, "the run in " + folder_->options_.directory +
                                       " is over: give each run a folder of its own");
  if (auto written = files.write("master", opening.session); !written) return written;
  if (auto written = files.write("run", to_text(opening)); !written) return written;
  const std::lock_guard lock(folder_->mutex_);
  folder_->numbers_ = files.list("modules").size();
  return {};
}

Result<RunOpening> DirectoryCoordinator::run_opening(std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  const auto text = folder_->files_.read("run");
  if (!text) return std::unexpected(text.error());
  return from_text<RunOpening>(*text);
}

Status DirectoryCoordinator::enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  const SharedFiles& files = folder_->files_;
  const std::string module = as_file_name(assignment.module);
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(folder_->mutex_);
    number = ++folder_->numbers_;
  }
  const EntryName entry = entry_name(assignment, number);
  const std::string text = to_text(assignment);
  // First where it waits, then that it is known: a crash between the two leaves it waiting, which is found
  // below.
  const auto known = files.read("modules/" + module);
  if (known && *known != text)
    return failure(Errc::conflict, assignment.module + " was enqueued before, as something else");
  if (known) return {};
  for (const char* folder : {"queue", "leased", "ended"}) {
    for (const std::string& name : files.list(folder)) {
      if (!name.starts_with("own-") && parsed(name).module == module)
        return files.write("modules/" + module, text);
    }
  }
  if (auto written = files.write("queue/" + entry.text(), text); !written) return written;
  return files.write("modules/" + module, text);
}

Result<SerializedModuleResult> DirectoryCoordinator::wait_for_result(const std::string& module,
                                                                     std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  Duration delay = folder_->options_.poll;
  do {
    if (auto expired = folder_->expire(); !expired) return std::unexpected(expired.error());
    if (const std::string name = folder_->ended(module); !name.empty()) return folder_->result(name);
  } while (folder_->wait(delay, stop));
  return stopped();
}

Result<std::vector<SerializedModuleResult>> DirectoryCoordinator::next_results(std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  Duration delay = folder_->options_.poll;
  do {
    if (auto expired = folder_->expire(); !expired) return std::unexpected(expired.error());
    std::vector<SerializedModuleResult> results;
    for (const std::string& name : folder_->files_.list("ended")) {
      if (name.starts_with("own-") || !folder_->told_.insert(name).second) continue;
      auto result = folder_->result(name);
      if (!result) return std::unexpected(result.error());
      results.push_back(std::move(*result));
    }
    if (!results.empty()) return results;
  } while (folder_->wait(delay, stop));
  return stopped();
}

Result<std::vector<RegisteredWorker>> DirectoryCoordinator::get_registered_workers(std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  (void)folder_->files_.touch("master");
  std::vector<RegisteredWorker> all;
  for (const std::string& name : folder_->files_.list("workers")) {
    const auto index = static_cast<std::int32_t>(std::stol(name));
    auto presence = folder_->presence(index);
    if (!presence) return std::unexpected(presence.error());
    auto silence = folder_->silence(index);
    if (!silence) return std::unexpected(silence.error());
    if (!*presence) continue;
    const Presence& one = **presence;
    WorkerStatus status = WorkerStatus::connected;
    if (one.has_left)
      status = WorkerStatus::disconnected;
    else if (*silence > folder_->options_.lease)
      status = WorkerStatus::timed_out;
    else if (!one.current_module.empty())
      status = WorkerStatus::executing;
    else if (one.was_active)
      status = WorkerStatus::active;
    all.push_back({one.registration, status, one.current_module, *silence});
  }
  return all;
}

Status DirectoryCoordinator::broadcast_cancellation(const std::string& reason, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  auto written = folder_->files_.write_new("cancelled", reason);
  return written ? Status{} : Status(std::unexpected(written.error()));
}

Status DirectoryCoordinator::close_run(const std::string& reason, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  auto written = folder_->files_.write_new("closed", reason);
  return written ? Status{} : Status(std::unexpected(written.error()));
}

Status DirectoryCoordinator::register_worker(const WorkerRegistration& registration, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  if (auto admitted = folder_->admit(registration); !admitted) return admitted;
  // Of several that come at once one is the first.
  const Presence mine{.registration = registration};
  auto is_first = folder_->files_.write_new("workers/" + std::to_string(registration.index), to_text(mine));
  if (!is_first) return std::unexpected(is_first.error());
  if (*is_first) return {};
  auto known = folder_->presence(registration.index);
  if (!known) return std::unexpected(known.error());
  auto silence = folder_->silence(registration.index);
  if (!silence) return std::unexpected(silence.error());
  if (*known && (*known)->registration.session != registration.session && !(*known)->has_left &&
      *silence <= folder_->options_.lease) {
    return failure(
        Errc::locked,
        "worker " + std::to_string(registration.index) +
            " is registered already, by another process that is still there: give each its own index");
  }
  return folder_->keep(mine);
}

Result<Dequeued> DirectoryCoordinator::dequeue_module(const WorkerRegistration& worker,
                                                      std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  Duration delay = folder_->options_.poll;
  do {
    if (auto admitted = folder_->admit(worker); !admitted) return std::unexpected(admitted.error());
    auto closed = folder_->closed();
    if (!closed) return std::unexpected(closed.error());
    if (*closed) return **closed;
    if (auto expired = folder_->expire(); !expired) return std::unexpected(expired.error());
    if (auto assigned = folder_->take(worker)) return std::move(*assigned);
  } while (folder_->wait(delay, stop));
  return stopped();
}

Result<Accepted> DirectoryCoordinator::publish_result(const SerializedModuleResult& result,
                                                      std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  const SharedFiles& files = folder_->files_;
  const std::string text = to_text(result);
  if (result.lease.empty()) {
    const std::string name = "own-" + as_file_name(result.module);
    auto written = files.write_new("results/" + name, text);
    if (!written) return std::unexpected(written.error());
    if (!*written) return folder_->result(name) == result ? Accepted::duplicate : Accepted::stale;
    if (auto ended = files.write("ended/" + name, ""); !ended) return std::unexpected(ended.error());
    return Accepted::first;
  }
  if (result.lease.find('/') != std::string::npos)
    return failure(Errc::lease_unknown, "no lease of this folder");
  if (files.exists("ended/" + result.lease))
    return folder_->result(result.lease) == result ? Accepted::duplicate : Accepted::stale;
  const auto age = files.age("leased/" + result.lease);
  if (!age) return std::unexpected(age.error());
  if (!*age || **age > folder_->options_.lease) return Accepted::stale;
  if (auto written = files.write("results/" + result.lease, text); !written)
    return std::unexpected(written.error());
  auto ended = files.rename("leased/" + result.lease, "ended/" + result.lease);
  if (!ended) return std::unexpected(ended.error());
  return *ended ? Accepted::first : Accepted::stale;
}

Result<HeartbeatReply> DirectoryCoordinator::send_heartbeat(const WorkerHeartbeat& heartbeat,
                                                            std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  const SharedFiles& files = folder_->files_;
  if (auto expired = folder_->expire(); !expired) return std::unexpected(expired.error());
  auto known = folder_->presence(heartbeat.index);
  if (!known) return std::unexpected(known.error());
  if (!*known)
    return failure(Errc::not_found, "worker " + std::to_string(heartbeat.index) + " is not registered");
  if ((*known)->registration.session != heartbeat.session)
    return failure(Errc::conflict, "another process is worker " + std::to_string(heartbeat.index) + " now");
  Presence presence = **known;
  presence.was_active = true;
  presence.has_left = heartbeat.leaving;
  presence.current_module = heartbeat.current_module;
  if (auto kept = folder_->keep(presence); !kept) return std::unexpected(kept.error());

  HeartbeatReply reply;
  for (const std::string& lease : heartbeat.leases) {
    if (!files.touch("leased/" + lease)) reply.lost.push_back(lease);
  }
  auto cancelled = is_cancellation_requested(stop);
  if (!cancelled) return std::unexpected(cancelled.error());
  reply.cancelled = std::move(*cancelled);
  auto closed = folder_->closed();
  if (!closed) return std::unexpected(closed.error());
  reply.closed = std::move(*closed);
  const auto silence = files.age("master");
  if (!silence) return std::unexpected(silence.error());
  reply.master_silent_for = silence->value_or(Duration{});
  return reply;
}

Result<std::optional<CancellationSignal>> DirectoryCoordinator::is_cancellation_requested(
    std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  auto reason = folder_->files_.read("cancelled");
  if (reason) return CancellationSignal{std::move(*reason)};
  if (reason.error().code == Errc::not_found) return std::optional<CancellationSignal>();
  return std::unexpected(reason.error());
}

Status DirectoryCoordinator::say(const std::vector<Said>& said, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  return folder_->files_.write("said/" + folder_->next_said(), to_text(said));
}

Result<std::vector<Said>> DirectoryCoordinator::take_said(std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  std::vector<Said> all;
  for (const std::string& name : folder_->files_.list("said")) {
    const auto text = folder_->files_.read("said/" + name);
    auto said = text ? from_text<std::vector<Said>>(*text) : Result<std::vector<Said>>();
    if (said) all.insert(all.end(), said->begin(), said->end());
    folder_->files_.remove("said/" + name);
  }
  return all;
}

}  // namespace baton::pipeline
