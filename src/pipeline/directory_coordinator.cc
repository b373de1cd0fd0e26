#include "pipeline/directory_coordinator.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "pipeline/directory_run.h"
#include "pipeline/wire_text.h"

namespace baton::pipeline {
namespace {

std::unexpected<Error> stopped() { return failure(Errc::closed, "stopped"); }

}  // namespace

DirectoryCoordinator::DirectoryCoordinator(const DirectoryCoordinatorOptions& options)
    : folder_(std::make_unique<DirectoryRun>(options)), blobs_(options.directory + "/blobs") {}
DirectoryCoordinator::~DirectoryCoordinator() = default;

Status DirectoryCoordinator::open_run(const RunOpening& opening, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  const SharedFiles& files = folder_->files;
  const auto before = run_opening(stop);
  if (files.exists("closed")) return folder_->over();
  if (before && !is_of_same_pipeline(opening, *before))
    return failure(Errc::conflict, "the run in " + folder_->options.directory +
                                       " was begun with another pipeline: give each run a folder of its own");
  if (auto held = folder_->claim(opening.session); !held) return held;
  // A run keeps the lease that it was begun with: those who take part in it have heard of no other.
  const auto first = run_opening(stop);
  RunOpening mine = opening;
  mine.lease = first && first->lease ? first->lease : folder_->options.lease;
  folder_->heed(mine);
  if (auto written = files.write("run", to_text(mine)); !written) return written;
  return folder_->look_around();
}

Result<RunOpening> DirectoryCoordinator::run_opening(std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  const auto text = folder_->files.read("run");
  if (!text) return std::unexpected(text.error());
  auto opening = from_text<RunOpening>(*text);
  if (opening) folder_->heed(*opening);
  return opening;
}

Result<std::vector<std::string>> DirectoryCoordinator::enqueued_modules(std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  // All of them: a crash may have come between making the one and the other, and files are on their way.
  std::set<std::string> all;
  for (const std::string folder : {"modules/", "queue/", "leased/", "ended/"}) {
    const auto names = folder_->files.list(folder);
    if (!names) return std::unexpected(names.error());
    for (const std::string& name : *names) {
      const auto text = folder_->files.read(folder + name);
      if (auto one = text ? from_text<ModuleAssignment>(*text) : Result<ModuleAssignment>(); text && one)
        all.insert(std::move(one->module));
    }
  }
  const std::lock_guard lock(folder_->mutex);
  folder_->told.clear();
  return std::vector<std::string>(all.begin(), all.end());
}

Result<std::vector<SerializedModuleResult>> DirectoryCoordinator::own_results(std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  // Not those in ended/ alone: a crash may have come before that was written.
  const auto names = folder_->files.list("results");
  if (!names) return std::unexpected(names.error());
  std::vector<SerializedModuleResult> all;
  for (const std::string& name : *names) {
    if (!name.starts_with(kOwn)) continue;
    auto result = folder_->result(name);
    if (!result) return std::unexpected(result.error());
    all.push_back(std::move(*result));
  }
  return all;
}

Status DirectoryCoordinator::enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  // One that stood still does not know what another has begun since.
  if (auto held = folder_->hold(); !held) return held;
  const SharedFiles& files = folder_->files;
  const std::string module = as_file_name(assignment.module);
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(folder_->mutex);
    number = ++folder_->numbers;
  }
  const EntryName entry = entry_name(assignment, number);
  const std::string text = to_text(assignment);
  // First where it waits, then that it is known: a crash between the two leaves it waiting, which is found
  // below.
  const auto known = files.read("modules/" + module);
  if (known && *known != text)
    return failure(Errc::conflict, assignment.module + " was enqueued before, as something else");
  if (known) return {};
  if (!folder_->enter(module)) return files.write("modules/" + module, text);
  if (auto written = files.write("queue/" + entry.text(), text); !written) return written;
  return files.write("modules/" + module, text);
}

Result<SerializedModuleResult> DirectoryCoordinator::wait_for_result(const std::string& module,
                                                                     std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  Duration delay = folder_->options.poll;
  do {
    if (auto expired = folder_->expire(); !expired) return std::unexpected(expired.error());
    const auto name = folder_->ended(module);
    if (!name) return std::unexpected(name.error());
    if (!name->empty()) return folder_->result(*name);
  } while (folder_->wait(delay, stop));
  return stopped();
}

Result<std::vector<SerializedModuleResult>> DirectoryCoordinator::next_results(std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  Duration delay = folder_->options.poll;
  do {
    if (auto expired = folder_->expire(); !expired) return std::unexpected(expired.error());
    const auto names = folder_->files.list("ended");
    if (!names) return std::unexpected(names.error());
    std::vector<SerializedModuleResult> results;
    for (const std::string& name : *names) {
      if (!parsed(name) || !folder_->is_news(name)) continue;
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
  if (auto held = folder_->hold(); !held) return std::unexpected(held.error());
  const auto names = folder_->files.list("workers");
  if (!names) return std::unexpected(names.error());
  std::vector<RegisteredWorker> all;
  for (const std::string& name : *names) {
    std::int32_t index = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), index).ptr != name.data() + name.size())
      continue;  // not one of ours
    auto presence = folder_->presence(index);
    if (!presence) return std::unexpected(presence.error());
    auto silence = folder_->silence(index);
    if (!silence) return std::unexpected(silence.error());
    if (!*presence) continue;
    const Presence& one = **presence;
    WorkerStatus status = WorkerStatus::connected;
    if (one.has_left)
      status = WorkerStatus::disconnected;
    else if (*silence > folder_->lease_time())
      status = WorkerStatus::timed_out;
    else if (!one.current_modules.empty())
      status = WorkerStatus::executing;
    else if (one.was_active)
      status = WorkerStatus::active;
    all.push_back({one.registration, status, one.current_modules, *silence});
  }
  return all;
}

Status DirectoryCoordinator::broadcast_cancellation(const std::string& reason, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  if (auto held = folder_->hold(); !held) return held;
  auto written = folder_->files.write_new("cancelled", reason);
  return written ? Status{} : Status(std::unexpected(written.error()));
}

Status DirectoryCoordinator::close_run(const std::string& reason, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  return folder_->close(reason);
}

Status DirectoryCoordinator::register_worker(const WorkerRegistration& registration, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  if (auto admitted = folder_->admit(registration); !admitted) return admitted;
  // Of several that come at once one is the first.
  const Presence mine{.registration = registration};
  auto is_first = folder_->files.write_new("workers/" + std::to_string(registration.index), to_text(mine));
  if (!is_first) return std::unexpected(is_first.error());
  if (*is_first) return {};
  auto known = folder_->presence(registration.index);
  if (!known) return std::unexpected(known.error());
  auto silence = folder_->silence(registration.index);
  if (!silence) return std::unexpected(silence.error());
  if (*known && (*known)->registration.session != registration.session && !(*known)->has_left &&
      *silence <= folder_->lease_time()) {
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
  Duration delay = folder_->options.poll;
  do {
    if (auto admitted = folder_->admit(worker); !admitted) return std::unexpected(admitted.error());
    auto closed = folder_->closed();
    if (!closed) return std::unexpected(closed.error());
    if (*closed) return **closed;
    if (auto expired = folder_->expire(); !expired) return std::unexpected(expired.error());
    auto assigned = folder_->take(worker);
    if (!assigned) return std::unexpected(assigned.error());
    if (*assigned) return std::move(**assigned);
  } while (folder_->wait(delay, stop));
  return stopped();
}

Result<Accepted> DirectoryCoordinator::publish_result(const SerializedModuleResult& result,
                                                      std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  const SharedFiles& files = folder_->files;
  const std::string text = to_text(result);
  if (result.lease.empty()) {
    if (folder_->has_entered(as_file_name(result.module))) return folder_->withdraw(result);
    const std::string name = std::string(kOwn) + as_file_name(result.module);
    auto written = files.write_new("results/" + name, text);
    if (!written) return std::unexpected(written.error());
    if (!*written) return folder_->has_result(name, result) ? Accepted::duplicate : Accepted::stale;
    if (auto ended = files.write("ended/" + name, ""); !ended) return std::unexpected(ended.error());
    return Accepted::first;
  }
  if (result.lease.find('/') != std::string::npos)
    return failure(Errc::lease_unknown, "no lease of this folder");
  if (files.exists("ended/" + result.lease))
    return folder_->has_result(result.lease, result) ? Accepted::duplicate : Accepted::stale;
  const auto age = files.age("leased/" + result.lease);
  if (!age) return std::unexpected(age.error());
  if (!*age || **age > folder_->lease_time()) return Accepted::stale;
  if (auto written = files.write("results/" + result.lease, text); !written)
    return std::unexpected(written.error());
  auto ended = files.rename("leased/" + result.lease, "ended/" + result.lease);
  if (!ended) return std::unexpected(ended.error());
  return *ended ? Accepted::first : Accepted::stale;
}

Result<HeartbeatReply> DirectoryCoordinator::send_heartbeat(const WorkerHeartbeat& heartbeat,
                                                            std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  const SharedFiles& files = folder_->files;
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
  presence.current_modules = heartbeat.current_modules;
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
  auto reason = folder_->files.read("cancelled");
  if (reason) return CancellationSignal{std::move(*reason)};
  if (reason.error().code == Errc::not_found) return std::optional<CancellationSignal>();
  return std::unexpected(reason.error());
}

Status DirectoryCoordinator::say(const std::vector<Said>& said, std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return ready;
  return folder_->files.write("said/" + folder_->next_said(), to_text(said));
}

Result<std::vector<Said>> DirectoryCoordinator::take_said(std::stop_token stop) {
  if (auto ready = folder_->ready(stop); !ready) return std::unexpected(ready.error());
  const auto names = folder_->files.list("said");
  if (!names) return std::unexpected(names.error());
  std::vector<Said> all;
  for (const std::string& name : *names) {
    const auto text = folder_->files.read("said/" + name);
    auto said = text ? from_text<std::vector<Said>>(*text) : Result<std::vector<Said>>();
    if (said) all.insert(all.end(), said->begin(), said->end());
    folder_->files.remove("said/" + name);
  }
  return all;
}

}  // namespace baton::pipeline
