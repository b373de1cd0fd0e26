// What a submitter does: submit, cancel, requeue.
#include <algorithm>
#include <utility>

#include "server/request_operation.h"
#include "server/verb.h"

namespace baton::server {
namespace {

constexpr Parameter kQueue{"queue", Kind::text, Place::position, "Queue"};
constexpr Parameter kTask{"task", Kind::text, Place::position, "Task id, or key: and its key"};
constexpr Parameter kTaskOptions[] = {
    {"priority", Kind::number, Place::option, "0 to 9, larger first; 0 if not given"},
    {"delay_ms", Kind::number, Place::option, "Not before this long from now"},
    {"capability", Kind::text, Place::repeated, "Only for workers that have it"},
    {"max_failures", Kind::number, Place::option, "The failure with this number is final; 5 if not given"},
    {"backoff_ms", Kind::number, Place::option, "Wait after the first failure; 1000 if not given"},
    {"backoff_factor_percent", Kind::number, Place::option,
     "Each wait is this much of the one before; 200 if not given"},
    {"backoff_max_ms", Kind::number, Place::option, "No wait is longer; 300000 if not given"},
    {"jitter_percent", Kind::number, Place::option, "Give or take this much; 10 if not given"},
    {"max_attempts", Kind::number, Place::option, "It is dead after so many leases; 20 if not given"},
    {"max_hold_ms", Kind::number, Place::option, "A lease cannot be extended beyond this"},
};
constexpr auto kSubmit =
    joined<3>({kQueue,
               {"payload", Kind::bytes, Place::position, "What the worker gets"},
               {"key", Kind::text, Place::option, "The same key and content again gives the same task"}},
              kTaskOptions);
constexpr auto kSubmitMany =
    joined<3>({kQueue,
               {"payloads", Kind::bytes, Place::counted, "One for each task"},
               {"key", Kind::text, Place::repeated,
                "One for each task, or none; the same key and content again gives the same task"}},
              kTaskOptions);
constexpr Parameter kCancel[] = {
    kTask, {"actor", Kind::text, Place::option, "Who wants it"}, {"note", Kind::bytes, Place::option, "Why"}};
constexpr Parameter kRequeue[] = {kTask, {"key", Kind::text, Place::option, "Of the new task"}};

constexpr std::size_t kManyMax = 1024;

void read_submit(const std::string& ns, Arguments& arguments, core::SubmitTask& task) {
  task.ns = ns;
  task.queue = arguments.name("queue");
  if (!arguments.has_options()) return;
  task.priority = static_cast<std::uint8_t>(arguments.number("priority", 0, core::kPriorityMax));
  task.delay = arguments.duration("delay_ms", {});
  task.requires_capabilities = arguments.capabilities("capability");
  core::RetryPolicy& retry = task.retry;
  const auto count = [&](std::string_view name, std::uint32_t otherwise) {
    return static_cast<std::uint32_t>(arguments.number(name, otherwise, UINT32_MAX));
  };
  retry.max_failures = count("max_failures", retry.max_failures);
  retry.base = arguments.duration("backoff_ms", retry.base);
  retry.factor_percent = count("backoff_factor_percent", retry.factor_percent);
  retry.max = arguments.duration("backoff_max_ms", retry.max);
  retry.jitter_percent = count("jitter_percent", retry.jitter_percent);
  task.max_attempts = count("max_attempts", task.max_attempts);
  task.max_hold = arguments.duration("max_hold_ms", {});
}

core::Request submit(const std::string& ns, Arguments& arguments) {
  // Made where it stays: a request is large, and this is asked most often.
  core::Request request(std::in_place_type<core::SubmitTask>);
  auto& task = std::get<core::SubmitTask>(request);
  read_submit(ns, arguments, task);
  task.key = arguments.name("key");
  task.payload = arguments.blob("payload");
  return request;
}

std::unique_ptr<Operation> submit_many(const std::string& ns, Arguments& arguments) {
  core::SubmitTask task;
  read_submit(ns, arguments, task);
  const auto payloads = arguments.all("payloads");
  if (payloads.empty()) arguments.complain(Errc::invalid_request, "submit at least one task");
  if (payloads.size() > kManyMax) arguments.complain(Errc::too_large, "submit at most 1024 tasks at once");
  const auto keys = arguments.all("key");
  if (!keys.empty() && keys.size() != payloads.size())
    arguments.complain(Errc::invalid_request, "give a key for each of the tasks, or none");
  if (!std::ranges::all_of(keys, core::is_name))
    arguments.complain(Errc::invalid_request, "key must be 1 to 128 graphic ASCII characters");
  if (arguments.complaint()) return {};  // however many they are
  std::vector<core::Request> requests;
  for (std::size_t at = 0; at < payloads.size(); ++at) {
    core::SubmitTask one = task;
    if (at < keys.size()) one.key = keys[at];
    one.payload = core::Blob(payloads[at]);
    requests.emplace_back(std::move(one));
  }
  return std::make_unique<ManyRequestsOperation>(std::move(requests));
}

core::Request cancel(const std::string& ns, Arguments& arguments) {
  return core::CancelTask{.ns = ns,
                          .task = arguments.task("task"),
                          .actor = arguments.name("actor"),
                          .note = arguments.blob("note")};
}

core::Request requeue(const std::string& ns, Arguments& arguments) {
  return core::RequeueTask{.ns = ns, .task = arguments.task("task"), .key = arguments.name("key")};
}

constexpr Verb kVerbs[] = {
    {"submit", Permission::submit, kSubmit, submit, "Hands in a task", "Submitted"},
    {"submitmany", Permission::submit, kSubmitMany, submit_many,
     "Hands in many tasks of one queue; each has an outcome of its own", "ManySubmitted"},
    {"cancel", Permission::submit, kCancel, cancel,
     "Ends a task that is no longer wanted; whoever holds it learns at the next contact", "Committed"},
    {"requeue", Permission::submit, kRequeue, requeue,
     "Hands in a failed or dead task once more, as a new task that names the old one", "Submitted"},
};

}  // namespace

std::span<const Verb> submit_verbs() { return kVerbs; }

}  // namespace baton::server
