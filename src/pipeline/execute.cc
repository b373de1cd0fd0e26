#include "pipeline/execute.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>

#include "base/pause.h"
#include "pipeline/artifacts.h"
#include "pipeline/context.h"
#include "pipeline/words.h"

namespace baton::pipeline {
namespace {

// Its value cannot be written for others.
struct EncodeFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Doubled with each try, and shortened by up to a half, so that those who failed together do not come back
// together.
Duration delay_before(std::uint32_t next_try, const RetryPolicy& retry) {
  thread_local std::minstd_rand dice{std::random_device{}()};
  const double doubled =
      static_cast<double>(retry.delay.ms) * static_cast<double>(1ULL << std::min(next_try - 2, 30U));
  const double whole = std::min(doubled, static_cast<double>(retry.delay_max.ms));
  return Duration{static_cast<std::int64_t>(whole * std::uniform_real_distribution(0.5, 1.0)(dice))};
}

// Somebody else's code, asked where nobody could answer for what it throws.
bool says_yes(const std::function<bool(const ModuleFailure&)>& predicate, const ModuleFailure& failure) {
  try {
    return predicate(failure);
  } catch (...) {
    return false;
  }
}

class Execution {
 public:
  Execution(const Site& site, const ModuleOrder& order, Supervisor& supervisor)
      : site_(site),
        spec_(*order.node->spec),
        order_(order),
        inputs_(order.inputs),
        supervisor_(supervisor),
        stop_(supervisor.next_try({})),
        context_(site, *order.node, order.artifacts, order.attempt, stop_) {}

  ModuleResult run() {
    if (stop_.stop_requested()) return never_begun();
    if (std::optional<std::string> reason = reason_to_skip()) return skipped(*reason);
    if (has_failed_) return failed_without_body();
    if (spec_.hooks.before && !guarded([&] { spec_.hooks.before(context_); }))
      return was_skipped_ ? skipped(result_.skipped_because) : failed_without_body();
    do {
      result_ = {.tries = result_.tries + 1, .transfer = result_.transfer};
      has_failed_ = false;
      guarded([&] { perform(); });
      if (was_skipped_) return skipped(result_.skipped_because);
    } while (has_failed_ && try_again());
    if (!has_failed_) result_.status = ModuleStatus::succeeded;
    if (has_failed_) call_hook("failed", spec_.hooks.failed);
    call_hook("after", spec_.hooks.after);
    return std::move(result_);
  }

 private:
  void perform() {
    transfer([&] {
      fetch_inputs();
      fetch_artifacts(site_, *order_.node, order_.artifacts, stop_);
    });
    // What was given up meanwhile, as it took too long to come, is not begun afterwards.
    if (stop_.stop_requested()) throw Stopped("it was stopped before it began");
    result_.value = spec_.body(context_, inputs_);
    transfer([&] { store_what_it_made(); });
  }

  // However it ends.
  void transfer(const std::function<void()>& part) {
    struct Meter {
      ~Meter() {
        using std::chrono::milliseconds;
        const auto took = std::chrono::steady_clock::now() - began;
        total.ms += std::chrono::duration_cast<milliseconds>(took).count();
      }
      Duration& total;
      const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
    } const meter{result_.transfer};
    part();
  }

  void store_what_it_made() {
    result_.artifacts = store_artifacts(site_, *order_.node, context_.stored(), stop_);
    if (!order_.is_carried || !spec_.result.travels()) return;
    auto carried = carry(spec_.result, result_.value.get(), site_.blobs, stop_);
    if (carried) {
      result_.carried = std::move(*carried);
    } else if (carried.error().code == Errc::invalid_request) {
      throw EncodeFailed("its result: " + carried.error().message);
    } else {
      throw ArtifactFailed("the result of " + order_.node->id + ": " + carried.error().message);
    }
  }

  void fetch_inputs() {
    for (const LargeInput& large : order_.large) fetch_input(large);
  }

  void fetch_input(const LargeInput& large) {
    Settlement& input = inputs_[large.need][large.instance];
    if (input.value) return;
    auto value = take_out(*large.type, {{}, large.blob}, site_.blobs, stop_);
    if (!value) throw ArtifactFailed("the result of " + input.module + ": " + value.error().message);
    input.value = std::move(*value);
  }

  // False: it threw, and the result says what.
  bool guarded(const std::function<void()>& part) {
    try {
      part();
      return true;
    } catch (const Skipped& skipped) {
      was_skipped_ = true;
      result_.skipped_because = skipped.reason;
    } catch (const CommandFailed& failed) {
      settle({FailureKind::exit_code, failed.what(), failed.detail, failed.exit_code});
    } catch (const ArtifactFailed& failed) {
      settle({FailureKind::artifact, failed.what()});
    } catch (const EncodeFailed& failed) {
      settle({FailureKind::encode, failed.what()});
    } catch (const Stopped& stopped) {
      settle({FailureKind::cancelled, stopped.what(), context_.last_words()});
    } catch (const std::exception& failed) {
      settle({FailureKind::exception, failed.what(), context_.last_words()});
    } catch (...) {
      settle({FailureKind::exception, "it threw something that is no std::exception", context_.last_words()});
    }
    return false;
  }

  void settle(ModuleFailure failure) {
    has_failed_ = true;
    failure.message = context_.secrets().mask(failure.message);
    failure.detail = context_.secrets().mask(failure.detail);
    if (stop_.stop_requested()) {
      if (supervisor_.is_late()) {
        failure = {FailureKind::timeout,
                   "it took longer than " + in_words(spec_.timeout) + " and was stopped", failure.detail};
      } else {
        failure.kind = FailureKind::cancelled;
      }
    }
    result_.status = failure.kind == FailureKind::cancelled ? ModuleStatus::cancelled
                                                            : status_of_failure(*order_.node, failure);
    result_.failure = std::move(failure);
  }

  std::optional<std::string> reason_to_skip() {
    std::optional<std::string> reason;
    for (const SkipCondition& condition : spec_.skip) {
      if (!guarded([&] { reason = condition(context_); }) || reason) break;
    }
    if (!reason && !was_skipped_ && !has_failed_ && spec_.skip_by_inputs.reason_to_skip)
      guarded([&] { reason = reason_in_inputs(); });
    if (was_skipped_) reason = result_.skipped_because;
    return reason;
  }

  std::optional<std::string> reason_in_inputs() {
    if (spec_.skip_by_inputs.looks_at_values) transfer([this] { fetch_inputs(); });
    return spec_.skip_by_inputs.reason_to_skip(context_, inputs_);
  }

  ModuleResult skipped(const std::string& reason) {
    result_.status = ModuleStatus::skipped;
    result_.skipped_because = context_.secrets().mask(reason);
    call_hook("skipped", spec_.hooks.skipped);
    return std::move(result_);
  }

  // Nobody asks it whether it listens.
  ModuleResult never_begun() {
    settle({FailureKind::cancelled, "it was stopped before it began"});
    return std::move(result_);
  }

  ModuleResult failed_without_body() {
    call_hook("failed", spec_.hooks.failed);
    return std::move(result_);
  }

  bool try_again() {
    const RetryPolicy& retry = spec_.retry;
    if (result_.failure.kind == FailureKind::cancelled || result_.tries > retry.max) return false;
    if (retry.when && !says_yes(retry.when, result_.failure)) return false;
    context_.log("try " + std::to_string(result_.tries) + " failed: " + result_.failure.message);
    const Duration delay = delay_before(result_.tries + 1, retry);
    stop_ = supervisor_.next_try(delay);
    context_.begin_try(stop_);
    if (!pause(delay, stop_) && !stop_.stop_requested()) return true;
    // Otherwise it looks as if it had been given all its tries.
    result_.failure.message += "; the run was stopped before try " + std::to_string(result_.tries + 1) +
                               " of " + std::to_string(1 + retry.max);
    return false;
  }

  // A hook that comes afterwards changes nothing any more; that it threw is told.
  void call_hook(const char* which, const std::function<void(Context&, const Settlement&)>& hook) {
    if (!hook) return;
    try {
      hook(context_, settlement_of(*order_.node, result_));
    } catch (const std::exception& failed) {
      context_.log(std::string("its hook '") + which + "' failed: " + failed.what());
    } catch (...) {
      context_.log(std::string("its hook '") + which + "' failed");
    }
  }

  const Site& site_;
  const ModuleSpec& spec_;
  const ModuleOrder& order_;
  std::vector<Input> inputs_;
  Supervisor& supervisor_;
  std::stop_token stop_;  // of this try
  Context context_;
  ModuleResult result_;
  bool has_failed_ = false;
  bool was_skipped_ = false;
};

}  // namespace

ModuleStatus status_of_failure(const GraphNode& node, const ModuleFailure& failure) {
  const ModuleSpec& spec = *node.spec;
  const bool on_target = node.target && std::ranges::find(spec.allow_failure_on, node.target->name) !=
                                            spec.allow_failure_on.end();
  if (on_target || (spec.allow_failure && says_yes(spec.allow_failure, failure)))
    return ModuleStatus::ignored_failure;
  return failure.kind == FailureKind::timeout ? ModuleStatus::timed_out : ModuleStatus::failed;
}

Settlement settlement_of(const GraphNode& node, const ModuleResult& result) {
  return {.module = node.id,
          .target = node.target ? node.target->name : std::string(),
          .status = result.status,
          .value = result.value,
          .failure = result.failure,
          .skipped_because = result.skipped_because};
}

ModuleResult execute(const Site& site, const ModuleOrder& order, Supervisor& supervisor) {
  return Execution(site, order, supervisor).run();
}

}  // namespace baton::pipeline
