#include "pipeline/master.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/random_name.h"
#include "pipeline/steady_time.h"

namespace baton::pipeline {
namespace {

namespace chrono = std::chrono;

constexpr Duration kTick = milliseconds(200);
constexpr Duration kShown = milliseconds(100);  // how often whoever shows a clock is told of the time

std::int64_t wall_ms() {
  return chrono::duration_cast<chrono::milliseconds>(chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Master::Master(const Graph& graph, RunOptions options)
    : graph_(graph),
      options_(std::move(options)),
      observer_(options_.observer ? *options_.observer : nobody_),
      began_(steady_ms()),
      session_(random_name()),
      schedule_(graph, options_.history),
      results_(graph, schedule_, report_.modules) {
  if (options_.coordinator) coordinator_.emplace(*options_.coordinator, Role::master);
  if (options_.site.blobs == nullptr && coordinator_) {
    options_.site.blobs = coordinator_->blobs();
  } else if (options_.site.blobs == nullptr) {
    own_blobs_ = std::make_shared<TemporaryBlobs>();
    options_.site.blobs = own_blobs_.get();
  }
  results_.store_in(coordinator_ ? options_.site.blobs : nullptr);
  report_.run = options_.run;
  report_.pipeline = graph.definition().name;
  report_.began_at = {wall_ms()};
  for (NodeIndex node = 0; node < graph.size(); ++node) {
    report_.modules.push_back({.node = node, .id = graph[node].id});
    has_queue_timeouts_ |= graph[node].spec->queue_timeout > Duration{};
  }
  options_.site.log = [this, inbox = inbox_, also = options_.site.log](const LogLine& line) {
    if (also) also(line);
    inbox->post_chatter([this, line] { observer_.said(line); });
  };
  options_.site.progress = [this, inbox = inbox_](const std::string& module, double part) {
    inbox->post_chatter([this, module, part] {
      if (const NodeIndex* node = graph_.find(module)) observer_.progressed(*node, part);
    });
  };
}

Master::~Master() {
  inbox_->close();
  closing_.request_stop();  // and then the threads are waited for
}

Duration Master::now() const { return {steady_ms() - began_}; }

void Master::take_in() {
  for (const auto& what : inbox_->take()) what();
}

void Master::wait() {
  const bool clock_matters = !lacking_.empty() || give_up_at_ || has_queue_timeouts_ ||
                             graph_.definition().timeout > Duration{} || coordinator_;
  if (observer_.wants_time()) return inbox_->wait(kShown);
  inbox_->wait(clock_matters ? std::optional(kTick) : std::nullopt);
}

// By the clock, however much arrives meanwhile.
void Master::watch() {
  if (now() - watched_at_ < (observer_.wants_time() ? kShown : kTick)) return;
  watched_at_ = now();
  watch_capabilities();
  watch_clock();
  observer_.time_passed();
}

RunReport Master::run() {
  if (auto opened = open(); !opened) return refuse(opened.error());
  observer_.began(graph_, options_.run);
  const std::stop_callback on_stop(options_.stop, [this] { post([this] { cancel(); }); });
  struct Equipment {
    Site site;
    std::shared_ptr<BlobStore> blobs;
  };
  const auto mine = std::make_shared<const Equipment>(options_.site, own_blobs_);
  crew_ = std::make_unique<Crew>(std::shared_ptr<const Site>(mine, &mine->site), options_.jobs,
                                 [this](const GraphNode& node, ModuleResult result, Duration took) {
                                   post([this, index = index_of(node), result = std::move(result),
                                         took]() mutable { ended_here(index, std::move(result), took); });
                                 });
  if (options_.cache != nullptr)
    clerk_.emplace(
        graph_, options_.site, *options_.cache, !coordinator_, [this](NodeIndex node, CacheAnswer answer) {
          post([this, node, answer = std::move(answer)]() mutable { looked_up(node, std::move(answer)); });
        });
  restore();
  take_over();
  restore_failures();
  heed_cancellation();
  if (coordinator_)
    begin_listening();
  else
    skip_what_cannot_run_here();
  tell_what_ended();
  watch_capabilities();
  while (!schedule_.is_over()) {
    dispatch();
    if (schedule_.is_over()) break;
    wait();
    take_in();
    watch();
  }
  return close();
}

// Alone, nobody else will come: what this machine lacks is not there at all.
void Master::skip_what_cannot_run_here() {
  for (const NodeIndex node : graph_.in_order()) {
    if (is_final(schedule_.status(node))) continue;
    std::vector<std::string> missing;
    std::ranges::set_difference(graph_[node].capabilities, options_.site.capabilities,
                                std::back_inserter(missing));
    if (!missing.empty())
      schedule_.finish(node, ModuleStatus::skipped, "this machine lacks " + joined(missing));
  }
}

void Master::finish(NodeIndex node, ModuleStatus status, const std::string& reason,
                    const ModuleFailure& failed) {
  lacking_.erase(node);
  report_.modules[node].failure = failed;
  const bool was_stopped = status == ModuleStatus::cancelled && reason.empty() && schedule_.is_stopping();
  schedule_.finish(node, status, was_stopped ? schedule_.stop_reason() : reason);
  if (schedule_.is_stopping()) stop(schedule_.stop_reason(), false);
  tell_what_ended();
}

void Master::tell_what_ended() {
  for (const Ended& ended : schedule_.take_ended()) {
    lacking_.erase(ended.node);
    tell(ended.node);
  }
}

void Master::tell(NodeIndex node) {
  ModuleReport& report = report_.modules[node];
  report.status = schedule_.status(node);
  report.reason = schedule_.reason(node);
  if (options_.observer && has_value(report.status))
    (void)results_.value_of(node);  // one from elsewhere is still encoded
  observer_.changed(report, results_.value_at_hand(node));
}

void Master::cancel() {
  if (schedule_.is_over()) return;
  // Before workers are told, which takes a while if the coordinator does not answer.
  observer_.stopping(static_cast<std::size_t>(std::ranges::count_if(report_.modules, [&](const auto& one) {
    return schedule_.status(one.node) == ModuleStatus::running && !graph_[one.node].spec->always_run;
  })));
  stop(options_.stop_reason, true);
  observer_.told_to_stop();
}

void Master::stop(const std::string& reason, bool by_user) {
  by_user_ |= by_user && !schedule_.is_over();
  if (by_user && clerk_) clerk_->hurry();
  schedule_.stop(reason);
  if (!std::exchange(told_workers_to_stop_, true)) {
    crew_->watch().stop();
    Duration grace = options_.lost_after;
    for (const auto& [node, lane] : there_)
      grace = std::max(grace, graph_[node].spec->stop_grace + options_.lost_after);
    give_up_at_ = now() + grace;
    if (coordinator_ && !lost_) {
      if (auto done = coordinator_->broadcast_cancellation(reason, closing_.get_token()); !done)
        lose_coordination(done.error());
      withdraw_what_waits();
    }
  }
  tell_what_ended();
}

std::vector<WorkerTimes> Master::times() const {
  std::map<std::string, WorkerTimes> by_name;
  by_name[options_.site.name].idle = {report_.took.ms * static_cast<std::int64_t>(options_.jobs)};
  for (const RegisteredWorker& worker : fleet_.workers()) {
    const WorkerRegistration& one = worker.registration;
    by_name[name_of(worker)] = {.index = one.index,
                                .idle = {fleet_.attendance(one.index).ms * std::int64_t{one.slots}}};
  }
  for (const ModuleReport& module : report_.modules) {
    if (module.tries == 0 || module.worker.empty()) continue;
    WorkerTimes& one = by_name[module.worker];
    ++one.modules;
    one.busy = one.busy + module.took;
  }
  std::vector<WorkerTimes> all;
  for (auto& [name, one] : by_name) {
    one.idle = std::max(one.idle - one.busy, Duration{});
    all.push_back(one);
  }
  std::ranges::sort(all, {}, &WorkerTimes::index);
  return all;
}

RunReport Master::close() {
  crew_.reset();
  if (clerk_) clerk_->finish(options_.stop);
  clerk_.reset();
  take_in();  // the last of what was said
  const bool spoiled =
      std::ranges::any_of(report_.modules, [](const ModuleReport& one) { return spoils_run(one.status); });
  report_.outcome = lost_      ? RunOutcome::coordination_lost
                    : by_user_ ? RunOutcome::cancelled
                    : spoiled  ? RunOutcome::failed
                               : RunOutcome::succeeded;
  report_.reason = schedule_.stop_reason();
  report_.took = now();
  // First nobody else speaks with the coordinator any more.
  closing_.request_stop();
  own_results_.reset();
  threads_.clear();
  waiting_.clear();
  if (coordinator_ && !lost_) {
    if (auto closed = coordinator_->close_run(std::string(word(report_.outcome)), {}); !closed) {
      observer_.noticed("the workers could not be told that the run is over: " + closed.error().message);
      // How it ends is for somebody else to say.
      const Errc code = closed.error().code;
      if (code == Errc::conflict || code == Errc::corrupt || code == Errc::wrong_state) {
        report_.outcome = RunOutcome::coordination_lost;
        report_.reason = closed.error().message;
      }
    }
  }
  report_.workers = fleet_.workers();
  report_.times = times();
  observer_.ended(report_);
  return std::move(report_);
}

}  // namespace baton::pipeline
