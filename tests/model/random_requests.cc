#include "tests/model/random_requests.h"

#include <algorithm>
#include <concepts>

#include "core/limits.h"

namespace baton::model {

using namespace core;

namespace {

Duration just_over(Duration limit) { return milliseconds(limit.ms + 1); }

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

RandomRequests::RandomRequests(std::uint64_t seed)
    : random_(seed),
      tasks_max_(random_.among<std::uint64_t>({1, 2, 4, 24})),
      hurry_(1 + random_.below(6)),
      long_lives_(random_.one_in(2)) {}

Instant RandomRequests::later(Instant now, const ReferenceModel& model) {
  if (random_.one_in(300)) return now + days(400);
  if (!random_.one_in(hurry_)) return now;
  const auto up_to = [&](std::uint64_t ms) {
    return now + milliseconds(static_cast<std::int64_t>(random_.below(ms)));
  };
  switch (random_.below(6)) {
    case 0: return now + milliseconds(1);
    case 1: return up_to(800);
    case 2: return up_to(4000);
    case 3: return up_to(15000);
    default: break;
  }
  // Exactly when a lease expires or a task becomes eligible, or just before.
  std::vector<Instant> instants;
  for (const auto& [lsn, task] : model.tasks()) {
    if (task.hold) instants.push_back(task.hold->expiry);
    if (task.since > now) instants.push_back(task.since);
  }
  if (instants.empty()) return now;
  const Instant at = instants[random_.below(instants.size())];
  if (at - now > hours(1)) return now;
  return std::max(now, random_.one_in(2) ? at : at - milliseconds(1));
}

std::string RandomRequests::ns() { return random_.one_in(8) ? "m" : "n"; }
std::string RandomRequests::queue() { return random_.one_in(3) ? "r" : "q"; }
std::string RandomRequests::worker() { return random_.one_in(2) ? "w" : "v"; }
std::string RandomRequests::key() { return random_.among<std::string>({"", "", "", "a", "b", "c"}); }

Capabilities RandomRequests::capabilities(std::uint64_t chance) {
  std::vector<std::string> names;
  if (random_.one_in(chance)) names.push_back("gpu");
  if (random_.one_in(chance)) names.push_back("disk");
  return *Capabilities::of(names);
}

Duration RandomRequests::ttl() {
  if (random_.one_in(60)) return random_.among({milliseconds(0), just_over(kTtlMax), milliseconds(-1)});
  return random_.among({milliseconds(1), seconds(1), seconds(3), seconds(10), seconds(30), kTtlMax});
}

Blob RandomRequests::blob() {
  if (random_.one_in(80)) return Blob(std::string(65, 'x'));
  return Blob(random_.among<std::string>({"", "one", "two"}));
}

TaskRef RandomRequests::task() {
  if (random_.one_in(10)) return TaskRef::by_key(random_.among<std::string>({"a", "b", "c", "d"}));
  if (tasks_.empty() || random_.one_in(50)) return TaskId{7, random_.below(40)};
  const std::size_t recent = std::min<std::size_t>(tasks_.size(), tasks_max_);
  return tasks_[tasks_.size() - 1 - random_.below(recent)];
}

// Some task and some lease, mostly ones that belong together.
template <class Speech>
Speech RandomRequests::spoken(const ReferenceModel& model, Speech speech) {
  speech.ns = "n";
  speech.task = task();
  if (grants_.empty()) return speech;
  const std::size_t recent = std::min<std::size_t>(grants_.size(), random_.among<std::size_t>({1, 2, 6, 60}));
  GrantedOnce granted = grants_[grants_.size() - 1 - random_.below(recent)];
  if (random_.one_in(3)) {  // any lease of a task that is there
    std::vector<GrantedOnce> known;
    std::ranges::copy_if(grants_, std::back_inserter(known),
                         [&](const GrantedOnce& one) { return model.tasks().contains(one.task.lsn); });
    if (!known.empty()) granted = known[random_.below(known.size())];
  }
  speech.lease = granted.lease;
  if (!random_.one_in(8)) speech.task = granted.task;
  // A task without attempts left is soon gone, so it is spoken of while it is there.
  for (const auto& [lsn, task] : model.tasks()) {
    if (!task.is_doomed() || random_.one_in(2)) continue;
    speech.task = task.id;
    std::vector<GrantedOnce> its;
    std::ranges::copy_if(grants_, std::back_inserter(its),
                         [&](const GrantedOnce& one) { return one.task == task.id; });
    if (!its.empty() && !random_.one_in(4)) speech.lease = its[random_.below(its.size())].lease;
  }
  if (const auto found = model.tasks().find(granted.task.lsn); found != model.tasks().end()) {
    speech.ns = found->second.ns;
    if (!found->second.key.empty() && random_.one_in(3)) speech.task = TaskRef::by_key(found->second.key);
  }
  if (random_.one_in(15)) speech.lease.nonce ^= 1;
  if (random_.one_in(30)) speech.lease.epoch += 1;
  if (random_.one_in(25)) speech.lease = {};
  if (random_.one_in(40)) speech.ns = speech.ns == "n" ? "m" : "n";
  return speech;
}

Request RandomRequests::next(const ReferenceModel& model) {
  // An answer that was lost makes people ask again.
  if (!recent_.empty() && random_.one_in(6)) return recent_[random_.below(recent_.size())];
  Request request = fresh(model);
  const bool any_doomed =
      std::ranges::any_of(model.tasks(), [](const auto& one) { return one.second.is_doomed(); });
  if (any_doomed && random_.one_in(2)) request = extensions(model);
  if (long_lives_ && !random_.one_in(6)) {
    const bool ends = std::holds_alternative<CompleteTask>(request) ||
                      std::holds_alternative<CancelTask>(request) ||
                      std::holds_alternative<PauseQueue>(request);
    if (ends) request = random_.one_in(2) ? Request(pull()) : Request(spoken(model, ReleaseTask{}));
  }
  if (recent_.size() < 4) {
    recent_.push_back(request);
  } else {
    recent_[random_.below(recent_.size())] = request;
  }
  return request;
}

Request RandomRequests::fresh(const ReferenceModel& model) {
  switch (random_.below(20)) {
    case 0:
    case 1: return submission();
    case 2:
    case 3:
    case 4:
    case 5: return pull();
    case 6:
    case 7: return spoken(model, ExtendLease{.ttl = ttl()});
    case 8:
    case 9: return extensions(model);
    case 10: return spoken(model, CompleteTask{.result = blob()});
    case 11:
    case 12: {
      FailTask asked{.reason = blob(), .final = random_.one_in(6)};
      if (random_.one_in(4)) asked.delay = random_.among({seconds(5), milliseconds(-1), kDelayMax});
      return spoken(model, std::move(asked));
    }
    case 13:
    case 14: {
      ReleaseTask asked;
      if (!long_lives_ && random_.one_in(4))
        asked.delay = random_.among({seconds(3), milliseconds(-1), just_over(kDelayMax)});
      return spoken(model, std::move(asked));
    }
    case 15:
      return CancelTask{.ns = ns(), .task = task(), .actor = random_.one_in(20) ? "a b" : "", .note = blob()};
    case 16: return RequeueTask{.ns = ns(), .task = task(), .key = key()};
    case 17:
      if (random_.one_in(4)) return PauseQueue{.ns = ns(), .queue = queue()};
      return ResumeQueue{.ns = ns(), .queue = random_.one_in(20) ? "" : queue()};
    case 18:
      return PurgeQueue{
          .ns = ns(), .queue = queue(), .count_max = static_cast<std::uint32_t>(random_.below(4))};
    default: return move(model);
  }
}

SubmitTask RandomRequests::submission() {
  SubmitTask asked{.ns = ns(), .queue = queue(), .payload = blob(), .key = key()};
  if (random_.one_in(3)) return asked;
  if (long_lives_ && random_.one_in(2)) {
    asked.retry = {.max_failures = kFailuresMax, .base = seconds(1), .max = seconds(1)};
    asked.max_attempts = random_.among<std::uint32_t>({10, 12, kAttemptsMax});
    return asked;
  }
  asked.priority = static_cast<std::uint8_t>(random_.one_in(60) ? 10 : random_.below(3));
  asked.requires_capabilities = capabilities(5);
  if (random_.one_in(4)) asked.delay = random_.among({milliseconds(1), seconds(4), kDelayMax});
  if (random_.one_in(60)) asked.delay = just_over(kDelayMax);
  if (random_.one_in(2)) asked.max_attempts = random_.among<std::uint32_t>({0, 1, 2, 3, 10, 10, 10});
  if (random_.one_in(4)) asked.max_hold = random_.among({milliseconds(1), seconds(2), seconds(8)});
  if (random_.one_in(2)) {
    asked.retry = {.max_failures = static_cast<std::uint32_t>(random_.one_in(30) ? 0 : 1 + random_.below(14)),
                   .base = random_.among({milliseconds(0), milliseconds(7), seconds(2)}),
                   .factor_percent = random_.among<std::uint32_t>({100, 150, 1000}),
                   .max = seconds(20),
                   .jitter_percent = random_.among<std::uint32_t>({0, 10, 100})};
  }
  return asked;
}

LeaseTask RandomRequests::pull() {
  LeaseTask asked{
      .ns = ns(), .queues = {queue()}, .worker = worker(), .capabilities = capabilities(2), .ttl = ttl()};
  if (random_.one_in(2)) asked.queues.push_back(random_.one_in(20) ? "not a name" : "q");
  if (random_.one_in(80)) asked.queues.clear();
  if (random_.one_in(80)) asked.queues.assign(17, "q");
  if (random_.one_in(80)) asked.worker = "";
  return asked;
}

ExtendLeases RandomRequests::extensions(const ReferenceModel& model) {
  ExtendLeases asked{.ns = ns()};
  for (std::uint64_t i = random_.below(4); i > 0; --i) {
    asked.items.push_back(spoken(model, ExtendLease{.ttl = ttl()}));
  }
  return asked;
}

// What moves blobs reads them first; here their content is looked up among the few there are.
MoveBlob RandomRequests::move(const ReferenceModel& model) {
  MoveBlob asked;
  asked.task = task().id;
  const auto found = model.tasks().find(asked.task.lsn);
  if (found == model.tasks().end()) return asked;
  asked.from = found->second.payload;
  if (const auto& pasts = found->second.pasts; !pasts.empty() && random_.one_in(2)) {
    const Past& past = pasts[random_.below(pasts.size())];
    asked.part = BlobPart::note;
    asked.lease = past.lease;
    asked.from = past.note;
  }
  for (const std::string_view text : {"one", "two"}) {
    if (Blob(text).hash() == asked.from.hash) asked.blob = Blob(text);
  }
  if (random_.one_in(10)) asked.from.offset ^= 1;
  if (random_.one_in(10)) asked.blob = Blob("other");
  return asked;
}

}  // namespace baton::model
