#include "pipeline/master.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "pipeline/random_name.h"

namespace baton::pipeline {
namespace {

namespace chrono = std::chrono;

constexpr Duration kTick = milliseconds(200);
constexpr Duration kShown = milliseconds(100);  // how often whoever shows a clock is told of the time

std::int64_t steady_ms() {
  return chrono::duration_cast<chrono::milliseconds>(chrono::steady_clock::now().time_since_epoch()).count();
}
std::int64_t wall_ms() {
  return chrono::duration_cast<chrono::milliseconds>(chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Master::Master(const Graph& graph, RunOptions options)
    : graph_(graph),
      options_(std::move(options)),
      observer_(options_.observer ? *options_.observer : nobody_),
      began_(steady_ms()),
      schedule_(graph, options_.history),
      results_(graph, schedule_, report_.modules) {
  if (options_.coordinator) coordinator_.emplace(*options_.coordinator, Role::master);
  report_.run = options_.run;
  report_.pipeline = graph.definition().name;
  report_.began_at = {wall_ms()};
  for (NodeIndex node = 0; node < graph.size(); ++node) {
    report_.modules.push_back({.node = node, .id = graph[node].id});
    has_queue_timeouts_ |= graph[node].spec->queue_timeout > Duration{};
  }
  options_.site.log = [this, also = options_.site.log](const LogLine& line) {
    if (also) also(line);
    post([this, line] { observer_.said(line); });
  };
  options_.site.progress = [this](const std::string& module, double part) {
    post([this, module, part] {
      if (const NodeIndex* node = graph_.find(module)) observer_.progressed(*node, part);
    });
  };
}

Master::~Master() { closing_.request_stop(); }  // and then the threads are waited for

Duration Master::now() const { return {steady_ms() - began_}; }

void Master::post(std::function<void()> what) {
  const std::lock_guard lock(mutex_);
  inbox_.push_back(std::move(what));
  if (inbox_.size() == 1) arrived_.notify_one();
}

void Master::take_in() {
  std::vector<std::function<void()>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(inbox_);
  }
  for (const auto& what : all) what();
}

// True: something arrived. False: time has passed.
bool Master::wait() {
  const bool clock_matters = !lacking_.empty() || give_up_at_ || has_queue_timeouts_ ||
                             graph_.definition().timeout > Duration{} || coordinator_;
  std::unique_lock lock(mutex_);
  const auto something = [this] { return !inbox_.empty(); };
  if (observer_.wants_time()) return arrived_.wait_for(lock, chrono::milliseconds(kShown.ms), something);
  if (clock_matters) return arrived_.wait_for(lock, chrono::milliseconds(kTick.ms), something);
  arrived_.wait(lock, something);
  return true;
}

RunReport Master::run() {
  observer_.began(graph_, options_.run);
  const std::stop_callback on_stop(options_.stop,
                                   [this] { post([this] { stop(options_.stop_reason, true); }); });
  crew_ = std::make_unique<Crew>(std::make_shared<const Site>(options_.site), options_.jobs,
                                 [this](const GraphNode& node, ModuleResult result, Duration took) {
                                   post([this, index = index_of(node), result = std::move(result),
                                         took]() mutable { ended_here(index, std::move(result), took); });
                                 });
  if (auto opened = open(); !opened) lose_coordination(opened.error());
  restore();
  if (!coordinator_) skip_what_cannot_run_here();
  tell_what_ended();
  watch_capabilities();
  while (!schedule_.is_over()) {
    dispatch();
    if (schedule_.is_over()) break;
    if (!wait()) {
      watch_capabilities();
      watch_clock();
      observer_.time_passed();
    }
    take_in();
  }
  return close();
}

Status Master::open() {
  if (!coordinator_) return {};
  const RunOpening opening{.session = random_name(),
                           .name = report_.pipeline,
                           .fingerprint = graph_.fingerprint(),
                           .definition = options_.definition};
  if (auto opened = coordinator_->open_run(opening, closing_.get_token()); !opened) return opened;
  if (auto workers = coordinator_->get_registered_workers(closing_.get_token()))
    saw_workers(std::move(*workers));
  threads_.emplace_back([this] { receive(closing_.get_token()); });
  threads_.emplace_back([this] { poll_workers(closing_.get_token()); });
  own_results_.emplace(*coordinator_,
                       [this](const std::string& text) { post([this, text] { observer_.noticed(text); }); });
  return {};
}

void Master::restore() {
  for (const auto& [module, restored] : options_.restored) {
    const NodeIndex* node = graph_.find(module);
    if (!node || is_final(schedule_.status(*node))) continue;
    results_.put(*node, restored.value, restored.artifacts);
    schedule_.finish(*node, ModuleStatus::restored, "it has succeeded before");
  }
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

bool Master::fits_here(const Lane& lane) const {
  return covers(options_.site.capabilities, lane.capabilities);
}

// First what workers have places for, then what this machine has; only then do workers get something to wait
// for them. So nothing waits for a worker while a place is free here.
void Master::dispatch() {
  if (!coordinator_ || lost_) return dispatch_here();
  std::vector<ModuleAssignment> all = assign(1);
  dispatch_here();
  if (here_ >= options_.jobs) std::ranges::move(assign(2), std::back_inserter(all));
  if (all.empty()) return;
  if (auto done = coordinator_->enqueue_modules(all, closing_.get_token()); !done)
    return lose_coordination(done.error());
  if (has_feed_) return;
  for (const ModuleAssignment& assignment : all) wait_for(assignment.module);
}

void Master::dispatch_here() {
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  while (here_ < options_.jobs) {
    const auto node = schedule_.begin_next([&](const Lane& lane) {
      return fits_here(lane) && (lane.hint != Hint::cpu || here_cpu_ < processors);
    });
    if (!node) return;
    begin_here(*node);
  }
}

std::vector<ModuleAssignment> Master::assign(std::size_t per_place) {
  std::vector<ModuleAssignment> all;
  while (const auto node = schedule_.begin_next(
             [&](const Lane& lane) { return !lane.pinned && fleet_.has_room(lane, per_place); })) {
    auto assignment = results_.assignment_of(*node);
    if (!assignment) {
      finish(*node, ModuleStatus::failed, {},
             {.kind = FailureKind::encode, .message = assignment.error().message});
      continue;
    }
    const Lane lane{graph_[*node].capabilities, false, graph_[*node].spec->hint};
    there_.emplace(*node, lane);
    fleet_.handed_out(lane);
    lacking_.erase(*node);
    tell(*node);
    all.push_back(std::move(*assignment));
  }
  return all;
}

void Master::begin_here(NodeIndex node) {
  ModuleOrder order{.node = &graph_[node], .inputs = results_.inputs_of(node), .attempt = 1};
  schedule_.note_status(node, ModuleStatus::running);
  lacking_.erase(node);
  ++here_;
  if (graph_[node].spec->hint == Hint::cpu) ++here_cpu_;
  ModuleReport& report = report_.modules[node];
  report.worker = options_.site.name;
  report.attempt = 1;
  report.began_at = now();
  tell(node);
  crew_->begin(std::move(order));
}

void Master::ended_here(NodeIndex node, ModuleResult result, Duration took) {
  --here_;
  if (graph_[node].spec->hint == Hint::cpu) --here_cpu_;
  results_.put(node, std::move(result.value));
  ModuleReport& report = report_.modules[node];
  report.tries = result.tries;
  report.took = took;
  finish(node, result.status, result.skipped_because, result.failure);
  if (own_results_ && !lost_) publish(node);
}

void Master::publish(NodeIndex node) {
  const ModuleReport& report = report_.modules[node];
  SerializedModuleResult result{.module = report.id,
                                .attempt = report.attempt,
                                .status = report.status,
                                .skipped_because = report.reason,
                                .tries = report.tries,
                                .took = report.took};
  if (report.failure.kind != FailureKind::none) result.failure = report.failure;
  if (auto text = results_.text_of(node); text && *text) result.value = std::move(**text);
  own_results_->publish(std::move(result));
}

void Master::ended_there(const SerializedModuleResult& result) {
  const NodeIndex* node = graph_.find(result.module);
  if (!node) return;
  const auto there = there_.find(*node);
  if (there == there_.end()) return;  // it has been given up
  fleet_.came_back(there->second);
  there_.erase(there);
  if (has_value(result.status)) results_.put(*node, result.value, result.artifacts);
  ModuleReport& report = report_.modules[*node];
  report.worker = "worker " + std::to_string(result.worker_index);
  report.attempt = result.attempt;
  report.tries = result.tries;
  report.took = result.took;
  report.began_at = now() - result.took;
  const ModuleFailure failed = result.failure.value_or(ModuleFailure{});
  const bool was_lost = failed.kind == FailureKind::worker_lost;
  finish(*node, was_lost ? status_of_failure(graph_[*node], failed) : result.status, result.skipped_because,
         failed);
}

void Master::finish(NodeIndex node, ModuleStatus status, const std::string& reason,
                    const ModuleFailure& failed) {
  lacking_.erase(node);
  report_.modules[node].failure = failed;
  schedule_.finish(node, status, reason);
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

void Master::stop(const std::string& reason, bool by_user) {
  by_user_ |= by_user && !schedule_.is_over();
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
    }
  }
  tell_what_ended();
}

// Ready modules that nobody can run are seen to wait, with what is missing, and not for ever.
void Master::watch_capabilities() {
  if (!coordinator_ || lost_) return;
  const bool all_are_there = options_.workers_expected > 0 && fleet_.alive() >= options_.workers_expected;
  std::vector<NodeIndex> hopeless;
  const auto nobody_can = [&](const Lane& lane) {
    return !fits_here(lane) && (lane.pinned || !fleet_.covers(lane));
  };
  schedule_.each_ready(nobody_can, [&](NodeIndex node) {
    const Lane lane{graph_[node].capabilities, graph_[node].spec->pinned, graph_[node].spec->hint};
    ModuleReport& report = report_.modules[node];
    if (lacking_.insert(node).second) {
      report.ready_at = now();
      schedule_.note_status(node, ModuleStatus::waiting_for_capability);
      const std::string closest = fleet_.closest(lane);
      report.reason = "nobody has " + joined(lane.capabilities) + (closest.empty() ? "" : "; " + closest);
      observer_.noticed(report.id + " waits: " + report.reason);
    }
    if (lane.pinned || all_are_there || now() - report.ready_at >= options_.capability_timeout)
      hopeless.push_back(node);
  });
  for (const NodeIndex node : hopeless) {
    if (is_final(schedule_.status(node))) continue;
    const std::string why = report_.modules[node].reason;
    finish(node, status_of_failure(graph_[node], {.kind = FailureKind::capability}), {},
           {.kind = FailureKind::capability, .message = why});
  }
}

void Master::watch_clock() {
  const Duration limit = graph_.definition().timeout;
  if (limit > Duration{} && now() > limit && !schedule_.is_stopping()) {
    stop("the run took longer than " + std::to_string(limit.ms / 1000) + " s", true);
  }
  if (has_queue_timeouts_) watch_queues();
  if (!give_up_at_ || now() < *give_up_at_) return;
  for (const auto& [node, lane] : std::exchange(there_, {})) {
    finish(node, ModuleStatus::cancelled, "its worker did not say how it ended",
           {.kind = FailureKind::cancelled, .message = "its worker did not say how it ended"});
  }
}

// Modules that have been ready for longer than they may.
void Master::watch_queues() {
  std::vector<NodeIndex> late;
  schedule_.each_ready([](const Lane&) { return true; },
                       [&](NodeIndex node) {
                         const Duration limit = graph_[node].spec->queue_timeout;
                         Duration& ready_at = report_.modules[node].ready_at;
                         if (ready_at == Duration{}) ready_at = now();
                         if (limit > Duration{} && now() - ready_at > limit) late.push_back(node);
                       });
  for (const NodeIndex node : late) {
    if (is_final(schedule_.status(node))) continue;
    const std::string held_up = schedule_.held_up_by(node);
    const ModuleFailure failed{.kind = FailureKind::timeout,
                               .message = "it has waited for longer than " +
                                          std::to_string(graph_[node].spec->queue_timeout.ms) + " ms" +
                                          (held_up.empty() ? "" : ", for " + held_up)};
    finish(node, status_of_failure(graph_[node], failed), {}, failed);
  }
}

void Master::lose_coordination(const Error& error) {
  if (closing_.stop_requested() || std::exchange(lost_, error)) return;
  observer_.noticed("the coordinator is lost: " + error.message);
  for (const auto& [node, lane] : std::exchange(there_, {})) {
    finish(node, ModuleStatus::cancelled, "the coordinator was lost",
           {.kind = FailureKind::cancelled, .message = error.message});
  }
  stop("the coordinator was lost: " + error.message, false);
}

void Master::saw_workers(std::vector<RegisteredWorker> workers) {
  for (const std::string& news : fleet_.update(std::move(workers))) observer_.noticed(news);
  for (const RegisteredWorker& worker : fleet_.workers()) {
    const NodeIndex* node = worker.current_module.empty() ? nullptr : graph_.find(worker.current_module);
    if (!node || schedule_.status(*node) != ModuleStatus::queued || !there_.contains(*node)) continue;
    schedule_.note_status(*node, ModuleStatus::running);
    report_.modules[*node].worker = "worker " + std::to_string(worker.registration.index);
    report_.modules[*node].began_at = now();
    tell(*node);
  }
  watch_capabilities();
}

void Master::receive(const std::stop_token& end) {
  while (!end.stop_requested()) {
    auto results = coordinator_->next_results(end);
    if (end.stop_requested()) return;
    if (!results && results.error().code == Errc::not_found) {
      return post([this] {
        has_feed_ = false;
        for (const auto& [node, lane] : there_) wait_for(graph_[node].id);
      });
    }
    if (!results) return post([this, error = results.error()] { lose_coordination(error); });
    post([this, all = std::move(*results)] {
      for (const SerializedModuleResult& result : all) ended_there(result);
    });
  }
}

void Master::wait_for(const std::string& module) {
  std::erase_if(waiting_, [](const Waiting& one) { return one.is_over.load(); });
  Waiting& one = waiting_.emplace_back();
  one.thread = std::jthread([this, &one, module] {
    const std::stop_token end = closing_.get_token();
    auto result = coordinator_->wait_for_result(module, end);
    if (!end.stop_requested()) {
      post([this, result = std::move(result)] {
        if (result)
          ended_there(*result);
        else
          lose_coordination(result.error());
      });
    }
    one.is_over = true;
  });
}

void Master::poll_workers(const std::stop_token& end) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!never.wait_for(lock, end, chrono::milliseconds(options_.worker_poll.ms),
                         [&] { return end.stop_requested(); })) {
    auto workers = coordinator_->get_registered_workers(end);
    if (end.stop_requested()) return;
    if (!workers) return post([this, error = workers.error()] { lose_coordination(error); });
    post([this, all = std::move(*workers)]() mutable { saw_workers(std::move(all)); });
  }
}

RunReport Master::close() {
  crew_.reset();
  take_in();  // the last of what was said
  const bool spoiled =
      std::ranges::any_of(report_.modules, [](const ModuleReport& one) { return spoils_run(one.status); });
  report_.outcome = lost_      ? RunOutcome::coordination_lost
                    : by_user_ ? RunOutcome::cancelled
                    : spoiled  ? RunOutcome::failed
                               : RunOutcome::succeeded;
  report_.reason = schedule_.stop_reason();
  report_.took = now();
  if (coordinator_ && !lost_) {
    if (auto closed = coordinator_->close_run(std::string(word(report_.outcome)), {}); !closed) {
      observer_.noticed("the workers could not be told that the run is over: " + closed.error().message);
    }
  }
  closing_.request_stop();
  own_results_.reset();
  threads_.clear();
  waiting_.clear();
  report_.workers = fleet_.workers();
  observer_.ended(report_);
  return std::move(report_);
}

}  // namespace baton::pipeline
