// What became of modules: those that ran here, and those that ran elsewhere, with what they said.
#include "pipeline/master.h"

#include <algorithm>
#include <string>
#include <utility>

#include "pipeline/log_book.h"
#include "pipeline/packing.h"

namespace baton::pipeline {

void Master::ended_here(NodeIndex node, ModuleResult result, Duration took) {
  --here_;
  if (graph_[node].spec->hint == Hint::cpu) --here_cpu_;
  ModuleReport& report = report_.modules[node];
  report.artifacts = result.artifacts;
  if (result.carried) report.blob = result.carried->blob;
  results_.put(node, std::move(result.value), std::move(result.carried), std::move(result.artifacts));
  report.tries = result.tries;
  report.took = took;
  report.transfer = result.transfer;
  finish(node, result.status, result.skipped_because, result.failure);
  keep_for_next_time(node);
  if (own_results_ && !lost_) publish(node);
}

void Master::publish(NodeIndex node) {
  const ModuleReport& report = report_.modules[node];
  SerializedModuleResult result{.module = report.id,
                                .attempt = report.attempt,
                                .status = report.status,
                                .skipped_because = in_bounds(report.reason),
                                .tries = report.tries,
                                .took = report.took,
                                .transfer = report.transfer};
  if (report.failure.kind != FailureKind::none) result.failure = in_bounds(report.failure);
  if (auto carried = results_.carried_of(node); carried && *carried)
    result.value = (*carried)->text, result.blob = (*carried)->blob;
  result.artifacts = report.artifacts;
  own_results_->publish(std::move(result));
}

void Master::ended_there(const SerializedModuleResult& result) {
  const NodeIndex* node = graph_.find(result.module);
  if (!node) return;
  const auto there = there_.find(*node);
  if (there == there_.end()) return;  // it has been given up
  fleet_.came_back(there->second);
  there_.erase(there);
  if (was_taken_back(result)) return keep_here(*node);
  ModuleReport& report = report_.modules[*node];
  if (has_value(result.status)) {
    report.blob = result.blob;
    report.artifacts = result.artifacts;
    results_.put(*node, nullptr, Carried{result.value, result.blob}, result.artifacts);
  }
  if (result.worker_index > 0) report.worker = "worker " + std::to_string(result.worker_index);
  report.attempt = result.attempt;
  report.tries = result.tries;
  report.took = result.took;
  report.transfer = result.transfer;
  if (result.tries > 0) report.began_at = now() - result.took;
  hear_rest(*node, result);
  const Secrets& secrets = options_.site.secrets;
  ModuleFailure failed = result.failure.value_or(ModuleFailure{});
  failed.message = secrets.mask(failed.message);
  failed.detail = secrets.mask(failed.detail);
  if (!is_final(result.status)) {  // nothing that a worker says may harm more than its own module
    failed = {.kind = FailureKind::decode,
              .message = report.worker + " says that it ended as '" + std::string(word(result.status)) + "'"};
    return finish(*node, status_of_failure(graph_[*node], failed), {}, failed);
  }
  const bool was_lost = failed.kind == FailureKind::worker_lost;
  // Not every coordinator knows who had it.
  if (was_lost && result.worker_index == 0 && !report.worker.empty())
    failed.message = report.worker + ": " + failed.message;
  finish(*node, was_lost ? status_of_failure(graph_[*node], failed) : result.status,
         secrets.mask(result.skipped_because), failed);
  keep_for_next_time(*node);
}

// A worker masks the secrets that it has. Another may be ours alone.
void Master::show(const std::string& module, std::uint32_t attempt, const std::string& line) {
  observer_.said({module, attempt, Stream::output, options_.site.secrets.mask(line)});
}

// Only what follows on what was heard before: what was lost on the way comes with the result, in order.
void Master::hear(const Said& said) {
  const NodeIndex* node = graph_.find(said.module);
  if (!node || !there_.contains(*node)) return;
  Heard& heard = heard_[*node];
  if (said.attempt > heard.attempt) heard = {said.attempt, 0};
  if (said.attempt != heard.attempt || said.first != heard.lines) return;
  for (const std::string& line : said.lines) show(said.module, said.attempt, line);
  heard.lines += said.lines.size();
}

void Master::hear_rest(NodeIndex node, const SerializedModuleResult& result) {
  const Heard heard = heard_[node];
  heard_.erase(node);
  const std::uint64_t known = heard.attempt == result.attempt ? heard.lines : 0;
  const auto say = [&](const std::string& line) { show(result.module, result.attempt, line); };
  if (result.log_from > known) say("[… " + std::to_string(result.log_from - known) + " lines left out …]");
  std::ranges::for_each(lines_of(result.log, known - std::min(known, result.log_from)), say);
}

void Master::fetch_log(SerializedModuleResult& result) {
  if (!result.log_blob || options_.site.blobs == nullptr) return;
  auto text = fetch_text(*options_.site.blobs, *result.log_blob, closing_.get_token());
  if (text)
    result.log = std::move(*text);
  else
    post([this, module = result.module, error = text.error()] {
      observer_.noticed("what " + module + " said could not be fetched: " + error.message);
    });
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
      std::vector<SerializedModuleResult> with_logs;
      for (const SerializedModuleResult& result : all) {
        if (result.log_blob)
          with_logs.push_back(result);
        else
          ended_there(result);
      }
      if (!with_logs.empty()) fetch_logs(with_logs);
    });
  }
}

// Where they are stored may be away, or have to do with others: nobody else's result waits for that.
void Master::fetch_logs(const std::vector<SerializedModuleResult>& results) {
  wait_aside([this, results] {
    for (SerializedModuleResult result : results) {
      fetch_log(result);
      if (closing_.stop_requested()) return;
      post([this, result = std::move(result)] { ended_there(result); });
    }
  });
}

void Master::wait_aside(std::function<void()> what) {
  std::erase_if(waiting_, [](const Waiting& one) { return one.is_over.load(); });
  Waiting& one = waiting_.emplace_back();
  one.thread = std::jthread([&one, what = std::move(what)] {
    what();
    one.is_over = true;
  });
}

void Master::wait_for(const std::string& module) {
  wait_aside([this, module] {
    const std::stop_token end = closing_.get_token();
    auto result = coordinator_->wait_for_result(module, end);
    if (result) fetch_log(*result);
    if (!end.stop_requested()) {
      post([this, result = std::move(result)] {
        if (result)
          ended_there(*result);
        else
          lose_coordination(result.error());
      });
    }
  });
}

}  // namespace baton::pipeline
