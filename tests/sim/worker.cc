#include "tests/sim/worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/trace.h"

namespace baton::sim {

using namespace core;

Worker::Worker(std::uint64_t index, Party party, WorkerKind kind, const Scenario& scenario, SimClock& clock,
               Agenda& agenda, Calls& calls, Faults& faults)
    : index_(index),
      party_(party),
      kind_(kind),
      scenario_(scenario),
      clock_(clock),
      agenda_(agenda),
      calls_(calls),
      faults_(faults),
      random_{mix(scenario.seed, 1000 + index)},
      name_(fmt::format("w{}", index)) {
  capacity_ = static_cast<std::uint32_t>(1 + random_.below(3));
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < scenario[Knob::capabilities]; ++i) {
    if (index == 0 || random_.below(2) == 0) names.push_back(fmt::format("c{}", i));
  }
  capabilities_ = Capabilities::of(names).value();
  plan(clock.now + static_cast<std::int64_t>(random_.below(50)));
}

void Worker::plan(std::int64_t at) {
  agenda_.plan(std::max(at, clock_.now + 1), Due::worker, index_, ++generation_);
}

void Worker::become_honest() {
  kind_ = WorkerKind::honest;
  healed_ = true;
  pulls_answered_ = 0;
  capacity_ = 4;
  plan(clock_.now);
}

void Worker::crash() {
  faults_.struck(Fault::worker_crashed);
  jobs_.clear();
  pulling_ = false;
}

void Worker::wake(std::uint64_t generation) {
  if (generation != generation_) return;
  if (kind_ == WorkerKind::crashing && random_.below(12) == 0) crash();
  for (Job& job : jobs_) {
    if (job.ending) continue;
    if (clock_.now >= job.finish_at) {
      finish(job);
    } else if (clock_.now >= job.extend_at) {
      extend(job);
    }
    if (kind_ == WorkerKind::lying && random_.below(3) == 0) lie(job);
  }
  if (jobs_.size() < capacity_ && !pulling_) pull();
  std::int64_t next =
      clock_.now + 1 + static_cast<std::int64_t>(random_.below(healed_ ? 40 : scenario_[Knob::poll_ms] * 2));
  for (const Job& job : jobs_) {
    if (!job.ending) next = std::min({next, job.extend_at, job.finish_at});
  }
  plan(next);
}

void Worker::pull() {
  pulling_ = true;
  LeaseTask request{.ns = kNamespace,
                    .worker = name_,
                    .capabilities = capabilities_,
                    .ttl = milliseconds(static_cast<std::int64_t>(scenario_[Knob::ttl_ms]))};
  const std::uint64_t queues = scenario_[Knob::queues];
  const std::uint64_t first = random_.below(queues);
  for (std::uint64_t i = 0; i < queues; ++i)
    request.queues.push_back(fmt::format("q{}", (first + i) % queues));
  calls_.ask(party_, std::move(request), healed_ ? 3 : 2);
}

void Worker::extend(Job& job) {
  const auto ttl = static_cast<std::int64_t>(scenario_[Knob::ttl_ms]);
  job.extend_at = clock_.now + std::max<std::int64_t>(ttl / 3, 2);
  if (jobs_.size() > 1 && random_.below(2) == 0) {
    ExtendLeases many{.ns = kNamespace};
    for (const Job& each : jobs_)
      many.items.push_back({.task = each.task, .lease = each.lease, .ttl = milliseconds(ttl)});
    calls_.ask(party_, std::move(many), 2);
    return;
  }
  calls_.ask(party_,
             ExtendLease{.ns = kNamespace, .task = job.task, .lease = job.lease, .ttl = milliseconds(ttl)},
             2);
}

void Worker::finish(Job& job) {
  job.ending = true;
  const std::uint64_t failing = scenario_[Knob::fail_percent];
  // A task that is here again is often given up.
  const bool tired = !healed_ && job.attempt > 1 && random_.below(4) == 0;
  const std::uint64_t choice = healed_ ? 100 : tired ? 0 : random_.below(100);
  Request request;
  if (choice >= failing + 10) {
    request = CompleteTask{.ns = kNamespace,
                           .task = job.task,
                           .lease = job.lease,
                           .result = Blob(std::string(random_.below(60), 'r'))};
  } else if (choice < failing) {
    request = FailTask{.ns = kNamespace,
                       .task = job.task,
                       .lease = job.lease,
                       .reason = Blob(std::string(random_.below(30), 'x')),
                       .final = tired || random_.below(3) == 0};
  } else {
    const bool later = random_.below(3) == 0;
    request =
        ReleaseTask{.ns = kNamespace,
                    .task = job.task,
                    .lease = job.lease,
                    .delay = milliseconds(later ? 1 + static_cast<std::int64_t>(random_.below(3000)) : 0)};
  }
  if (kind_ == WorkerKind::doubling) {
    faults_.struck(Fault::worker_doubled);
    calls_.ask(party_, request, 1);
  }
  calls_.ask(party_, std::move(request), 5);
}

void Worker::lie(const Job& job) {
  faults_.struck(Fault::worker_lied);
  LeaseId lease = job.lease;
  switch (random_.below(3)) {
    case 0: ++lease.nonce; break;
    case 1: lease.lsn += 1; break;
    default: lease = overheard_; break;
  }
  calls_.ask(party_, CompleteTask{.ns = kNamespace, .task = job.task, .lease = lease, .result = Blob("lie")},
             1);
}

void Worker::take(const Granted& granted, std::int64_t asked) {
  const std::int64_t ttl = std::max<std::int64_t>(granted.ttl.ms, 1);
  Job job{
      .task = granted.task, .lease = granted.lease, .attempt = granted.attempt, .extend_at = asked + ttl / 2};
  if (healed_) {
    job.finish_at = clock_.now + 1;
  } else if (kind_ == WorkerKind::stalling && random_.below(2) == 0) {
    faults_.struck(Fault::worker_stalled);
    job.finish_at = clock_.now + ttl + ttl / 2;
    job.extend_at = job.finish_at;
  } else {
    job.finish_at =
        clock_.now + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(ttl) * 2));
  }
  overheard_ = granted.lease;
  jobs_.push_back(job);
  plan(clock_.now);
}

Worker::Job* Worker::find(const LeaseId& lease) {
  const auto found = std::ranges::find(jobs_, lease, &Job::lease);
  return found == jobs_.end() ? nullptr : &*found;
}

void Worker::answered(const Call& call, const engine::Answer& answer) {
  if (std::holds_alternative<LeaseTask>(call.request)) {
    pulling_ = false;
    ++pulls_answered_;
    if (!answer.reply) return;
    if (const auto* granted = std::get_if<Granted>(&*answer.reply)) take(*granted, call.asked);
    return;
  }
  const bool lost = !answer.reply && answer.reply.error().code != Errc::exhausted;
  std::visit(
      [&](const auto& asked) {
        if constexpr (requires { asked.lease.nonce; }) {
          Job* job = find(asked.lease);
          if (job == nullptr) return;
          const bool over = job->ending && (answer.reply || lost);
          // A stalling worker does not listen.
          if (over || (lost && kind_ != WorkerKind::stalling)) {
            std::erase_if(jobs_, [&](const Job& each) { return each.lease == asked.lease; });
          } else if (job->ending) {
            job->ending = false;  // refused for now: it asks again
            job->finish_at = clock_.now + 50;
          }
        }
      },
      call.request);
}

void Worker::unanswered(const Call& call) {
  if (std::holds_alternative<LeaseTask>(call.request)) {
    pulling_ = false;
    return;
  }
  std::visit(
      [&](const auto& asked) {
        if constexpr (requires { asked.lease.nonce; }) {
          Job* job = find(asked.lease);
          if (job != nullptr && job->ending)
            std::erase_if(jobs_, [&](const Job& each) { return each.lease == asked.lease; });
        }
      },
      call.request);
}

}  // namespace baton::sim
