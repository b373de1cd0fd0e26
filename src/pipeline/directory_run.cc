#include "pipeline/directory_run.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/pause.h"
#include "pipeline/graph.h"
#include "pipeline/steady_time.h"
#include "pipeline/wire_text.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kPlaceLength = 1 + 1 + 12;

std::string padded(std::uint64_t number, std::size_t digits) {
  std::string text = std::to_string(number);
  return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

// Masters are numbered in the order in which they had the run.
std::string master_file(std::uint64_t number) { return "masters/" + padded(number, 12); }

// In place of the session of a master, with why.
constexpr std::string_view kClosed = "closed: ";

}  // namespace

std::string EntryName::text() const { return place + "-" + padded(attempt, 6) + "-" + module; }

EntryName entry_name(const ModuleAssignment& assignment, std::uint64_t number) {
  return {std::to_string(9 - std::min(assignment.priority, 9U)) + "-" + padded(number, 12), 1,
          as_file_name(assignment.module)};
}

std::optional<EntryName> parsed(const std::string& name) {
  constexpr std::size_t kAttempt = kPlaceLength + 1, kModule = kAttempt + 7;
  if (name.size() <= kModule || name[kPlaceLength] != '-' || name[kModule - 1] != '-') return std::nullopt;
  EntryName entry{name.substr(0, kPlaceLength), 0, name.substr(kModule)};
  const char* const end = name.data() + kModule - 1;
  if (std::from_chars(name.data() + kAttempt, end, entry.attempt).ptr != end) return std::nullopt;
  if (const std::size_t dash = entry.module.find('-'); dash != std::string::npos) entry.module.erase(dash);
  return entry;
}

Status DirectoryRun::claim(const std::string& session) {
  const auto masters = files.list("masters");
  if (!masters) return std::unexpected(masters.error());
  const auto is_mine = [&](std::uint64_t number) {
    const auto claimed = files.read(master_file(number));
    return claimed && *claimed == session;
  };
  std::uint64_t number = masters->size();
  if (number == 0 || !is_mine(number)) {
    const auto is_closed = is_closed_by(number);
    if (!is_closed) return std::unexpected(is_closed.error());
    if (*is_closed) return over();
    const auto locked =
        failure(Errc::locked, "this run has a master that is still there: give each run a folder of its own");
    // Of the one who is there, or of one who has claimed the run just now.
    for (const std::string& sign : {std::string("master"), master_file(number)}) {
      const auto age = files.age(sign);
      if (!age) return std::unexpected(age.error());
      if (*age && **age <= lease_time()) return locked;
    }
    const auto is_first = files.write_new(master_file(++number), session);
    if (!is_first) return std::unexpected(is_first.error());
    // A network file system may have done it, and lost the answer.
    if (!*is_first && !is_mine(number)) return locked;
  }
  {
    const std::lock_guard lock(mutex);
    number_ = number;
  }
  return hold(session);
}

Status DirectoryRun::hold(const std::string& session) {
  if (auto written = files.write("master", session); !written) return written;
  const std::lock_guard lock(mutex);
  session_ = session;
  held_at_ms_ = steady_ms();
  return {};
}

Status DirectoryRun::hold() {
  std::string session, next;
  bool is_due = false;
  {
    const std::lock_guard lock(mutex);
    if (session_.empty()) return {};
    session = session_;
    next = master_file(number_ + 1);
    is_due = steady_ms() - held_at_ms_ >= lease_time().ms / 3;
  }
  if (files.exists(next)) return taken_over();
  return is_due ? hold(session) : Status{};
}

Status DirectoryRun::close(const std::string& reason) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex);
    if (!session_.empty()) number = number_ + 1;
  }
  if (number > 0) {
    if (auto written = files.write_new(master_file(number), std::string(kClosed) + reason); !written)
      return std::unexpected(written.error());
    // By us, perhaps before: a network file system may have lost the answer.
    const auto is_closed = is_closed_by(number);
    if (!is_closed) return std::unexpected(is_closed.error());
    return *is_closed ? Status{} : taken_over();
  }
  const auto written = files.write_new("closed", reason);
  return written ? Status{} : Status(std::unexpected(written.error()));
}

Result<bool> DirectoryRun::is_closed_by(std::uint64_t number) {
  const auto text = files.read(master_file(number));
  if (!text && text.error().code == Errc::not_found) return false;
  if (!text) return std::unexpected(text.error());
  if (!text->starts_with(kClosed)) return false;
  const auto written = files.write_new("closed", text->substr(kClosed.size()));
  if (!written) return std::unexpected(written.error());
  return true;
}

std::unexpected<Error> DirectoryRun::over() const {
  return failure(Errc::conflict,
                 "the run in " + options.directory + " is over: give each run a folder of its own");
}

std::unexpected<Error> DirectoryRun::taken_over() const {
  return failure(Errc::conflict, "another master has taken over the run in " + options.directory);
}

Status DirectoryRun::look_around() {
  const std::lock_guard lock(mutex);
  const auto modules = files.list("modules");
  if (!modules) return std::unexpected(modules.error());
  numbers = modules->size();
  for (const char* folder : {"queue", "leased", "ended"}) {
    const auto names = files.list(folder);
    if (!names) return std::unexpected(names.error());
    for (const std::string& name : *names) {
      if (const auto entry = parsed(name)) entered.insert(entry->module);
    }
  }
  return {};
}

bool DirectoryRun::enter(const std::string& module) {
  const std::lock_guard lock(mutex);
  return entered.insert(module).second;
}

bool DirectoryRun::has_entered(const std::string& module) {
  const std::lock_guard lock(mutex);
  return entered.contains(module);
}

bool DirectoryRun::is_news(const std::string& ended) {
  const std::lock_guard lock(mutex);
  return told.insert(ended).second;
}

Status DirectoryRun::ready(const std::stop_token& stop) {
  if (stop.stop_requested()) return failure(Errc::closed, "stopped");
  const std::lock_guard lock(mutex);
  if (is_ready_) return {};
  for (const char* folder :
       {"masters", "workers", "modules", "queue", "leased", "ended", "results", "said"}) {
    if (auto made = files.make_folder(folder); !made) return made;
  }
  is_ready_ = true;
  return {};
}

bool DirectoryRun::wait(Duration& delay, const std::stop_token& stop) const {
  if (pause(delay, stop)) return false;
  delay = std::min(delay + Duration{delay.ms / 2 + 1}, Duration{options.poll.ms * 10});
  return true;
}

std::string DirectoryRun::next_said() {
  const std::lock_guard lock(mutex);
  std::string number = std::to_string(++said_);
  return writer_ + "-" + std::string(12 - std::min<std::size_t>(12, number.size()), '0') + number;
}

Status DirectoryRun::expire() {
  const auto leases = files.list("leased");
  if (!leases) return std::unexpected(leases.error());
  for (const std::string& lease : *leases) {
    std::optional<EntryName> entry = parsed(lease);
    if (!entry) continue;
    const auto age = files.age("leased/" + lease);
    if (!age) return std::unexpected(age.error());
    if (!*age || **age <= lease_time()) continue;
    const auto text = files.read("leased/" + lease);
    if (!text) continue;  // somebody else was faster
    const auto assignment = from_text<ModuleAssignment>(*text);
    if (!assignment) return failure(Errc::corrupt, "leased/" + lease + ": " + assignment.error().message);
    if (entry->attempt < assignment->attempts_max) {
      ++entry->attempt;
      if (auto moved = files.rename("leased/" + lease, "queue/" + entry->text()); !moved)
        return std::unexpected(moved.error());
      continue;
    }
    SerializedModuleResult lost{
        .module = assignment->module, .attempt = entry->attempt, .status = ModuleStatus::failed};
    lost.failure = ModuleFailure{.kind = FailureKind::worker_lost,
                                 .message = "its worker fell silent during attempt " +
                                            std::to_string(entry->attempt) + ", the last one it had"};
    // Under a name of its own: a result that comes too late must not be taken for this one.
    if (auto written = files.write("results/" + lease + ".lost", to_text(lost)); !written) return written;
    if (auto moved = files.rename("leased/" + lease, "ended/" + lease + ".lost"); !moved)
      return std::unexpected(moved.error());
  }
  return {};
}

Status DirectoryRun::admit(const WorkerRegistration& worker) const {
  const auto text = files.read("run");
  if (!text) return text.error().code == Errc::not_found ? Status{} : Status(std::unexpected(text.error()));
  const auto opening = from_text<RunOpening>(*text);
  if (!opening) return {};
  heed(*opening);
  return pipeline::admit(*opening, worker);
}

Result<std::optional<Closed>> DirectoryRun::closed() const {
  auto reason = files.read("closed");
  if (reason) return Closed{std::move(*reason)};
  if (reason.error().code == Errc::not_found) return std::optional<Closed>();
  return std::unexpected(reason.error());
}

Result<std::string> DirectoryRun::ended(const std::string& module) const {
  const std::string wanted = as_file_name(module);
  const auto names = files.list("ended");
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    const auto entry = parsed(name);
    if (name == std::string(kOwn) + wanted || (entry && entry->module == wanted)) return name;
  }
  return std::string();
}

Result<SerializedModuleResult> DirectoryRun::result(const std::string& name) const {
  auto text = files.read("results/" + name);
  if (!text) return std::unexpected(text.error());
  return from_text<SerializedModuleResult>(*text);
}

bool DirectoryRun::has_result(const std::string& name, const SerializedModuleResult& expected) const {
  const auto known = result(name);
  return known && *known == expected;
}

Result<std::optional<Presence>> DirectoryRun::presence(std::int32_t index) const {
  auto text = files.read("workers/" + std::to_string(index));
  if (!text && text.error().code == Errc::not_found) return std::optional<Presence>();
  if (!text) return std::unexpected(text.error());
  auto presence = from_text<Presence>(*text);
  if (!presence) return std::unexpected(presence.error());
  return std::optional(std::move(*presence));
}

Status DirectoryRun::keep(const Presence& presence) const {
  return files.write("workers/" + std::to_string(presence.registration.index), to_text(presence));
}

Result<Duration> DirectoryRun::silence(std::int32_t index) const {
  auto age = files.age("workers/" + std::to_string(index));
  if (!age) return std::unexpected(age.error());
  return age->value_or(days(1));
}

std::optional<ModuleAssignment> DirectoryRun::assignment(const std::string& entry) {
  const auto name = parsed(entry);
  if (!name) return std::nullopt;
  {
    const std::lock_guard lock(mutex);
    if (const auto known = assignments_.find(name->module); known != assignments_.end()) return known->second;
  }
  const auto text = files.read("queue/" + entry);
  if (!text) return std::nullopt;
  auto assignment = from_text<ModuleAssignment>(*text);
  if (!assignment) return std::nullopt;
  const std::lock_guard lock(mutex);
  return assignments_.emplace(name->module, std::move(*assignment)).first->second;
}

Result<std::optional<Assigned>> DirectoryRun::take(const WorkerRegistration& worker) {
  const auto entries = files.list("queue");
  if (!entries) return std::unexpected(entries.error());
  for (const std::string& entry : *entries) {
    const auto wanted = assignment(entry);
    if (!wanted || !covers(worker.capabilities, wanted->required_capabilities)) continue;
    // Its age is that of the lease from now on, so it has to be young before it is one.
    const std::string lease = entry + "-" + as_file_name(worker.session) + "." + random_name();
    const std::int64_t asked_at_ms = steady_ms();
    if (!files.touch("queue/" + entry)) continue;
    if (const auto taken = files.rename("queue/" + entry, "leased/" + lease); !taken || !*taken) continue;
    return Assigned{*wanted, parsed(entry)->attempt, lease, asked_at_ms};
  }
  return std::optional<Assigned>();
}

Result<Accepted> DirectoryRun::withdraw(const SerializedModuleResult& result) {
  if (auto expired = expire(); !expired) return std::unexpected(expired.error());
  const std::string module = as_file_name(result.module);
  const auto entries = files.list("queue");
  if (!entries) return std::unexpected(entries.error());
  for (const std::string& entry : *entries) {
    if (const auto one = parsed(entry); !one || one->module != module) continue;
    const std::string name = entry + "-withdrawn";
    if (auto written = files.write("results/" + name, to_text(result)); !written)
      return std::unexpected(written.error());
    const auto taken = files.rename("queue/" + entry, "ended/" + name);
    if (!taken) return std::unexpected(taken.error());
    if (*taken) return Accepted::first;
  }
  const auto before = ended(result.module);
  if (!before) return std::unexpected(before.error());
  return !before->empty() && has_result(*before, result) ? Accepted::duplicate : Accepted::stale;
}

}  // namespace baton::pipeline
