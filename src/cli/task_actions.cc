#include "cli/task_actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <memory>

#include "cli/complaint.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/quantities.h"
#include "cli/task_text.h"

namespace baton::cli {
namespace {

constexpr std::uint64_t kPageMax = 1000;
constexpr std::size_t kUnderWayMax = 256;

bool chooses(const TaskCommandOptions& options) {
  return !options.query.queue.empty() || !options.query.state.empty() || options.all_queues;
}

// Those that are to be acted on, all before the first one is: what is made meanwhile is not meant.
Result<std::vector<std::string>> chosen(client::Client& client, const TaskCommandOptions& options) {
  std::vector<std::string> tasks;
  client::TaskQuery query = options.query;
  do {
    query.count = static_cast<std::uint32_t>(std::min(options.limit - tasks.size(), kPageMax));
    const auto page = client.tasks(query);
    if (!page) return std::unexpected(page.error());
    for (const client::TaskView& view : page->tasks) tasks.push_back(view.task);
    query.cursor = page->cursor;
  } while (query.cursor != 0 && tasks.size() < options.limit);
  if (query.cursor != 0)
    to_errors("baton: there may be more than these {}; run it again, or with a larger --limit\n",
              options.limit);
  return tasks;
}

// An action under way, and its outcome.
template <class T>
std::future<Result<T>> begun(const std::function<void(client::Callback<T>)>& begin) {
  // Shared, for a callback can be copied, and a promise cannot.
  const auto promise = std::make_shared<std::promise<Result<T>>>();
  begin([promise](Result<T> result) { promise->set_value(std::move(result)); });
  return promise->get_future();
}

enum class Effect : bool { done, done_before };

// Acts on all that were chosen, many at a time. `tell` is given each task and its outcome, in order, and says
// whether that is new; one that has changed its state since it was chosen is only counted.
template <class T>
int act_on_chosen(client::Client& client, const TaskCommandOptions& options, const char* done,
                  const std::function<void(const std::string&, client::Callback<T>)>& act,
                  const std::function<Effect(const std::string&, const Result<T>&)>& tell) {
  const auto tasks = chosen(client, options);
  if (!tasks) return complain(tasks.error(), format_of(options.json));
  if (options.dry_run) {
    for (const std::string& task : *tasks)
      fmt::print("{}\n", options.json ? JsonObject().text("task", task).whole() : task);
    to_errors("{} would be {}\n", counted(tasks->size(), "task"), done);
    return 0;
  }
  std::uint64_t good = 0, done_before = 0, changed = 0;
  int exit_code = 0;
  Progress progress("tasks");
  for (std::size_t first = 0; first < tasks->size(); first += kUnderWayMax) {
    const std::size_t end = std::min(first + kUnderWayMax, tasks->size());
    std::vector<std::future<Result<T>>> under_way;
    for (std::size_t at = first; at < end; ++at)
      under_way.push_back(begun<T>([&](client::Callback<T> then) { act((*tasks)[at], std::move(then)); }));
    for (std::size_t at = first; at < end; ++at) {
      const Result<T> outcome = under_way[at - first].get();
      if (outcome) {
        ++(tell((*tasks)[at], outcome) == Effect::done ? good : done_before);
      } else if (outcome.error().code == Errc::wrong_state || outcome.error().code == Errc::not_found) {
        ++changed;
      } else {
        exit_code = std::max(exit_code, complain(outcome.error(), format_of(options.json)));
      }
    }
    progress.show(good + done_before, end, tasks->size());
  }
  progress.clear();
  to_errors("{} {}{}{}\n", counted(good, "task"), done,
            done_before > 0 ? fmt::format(", {} had been already", done_before) : "",
            changed > 0 ? fmt::format(", {} had changed meanwhile", changed) : "");
  return exit_code;
}

void tell_cancelled(const std::string& task, const TaskCommandOptions& options) {
  if (options.json)
    fmt::print("{}\n", JsonObject().text("task", task).text("status", "COMMITTED").whole());
  else
    fmt::print("{} is cancelled\n", task);
}

void tell_requeued(const client::Submitted& made, const TaskCommandOptions& options) {
  fmt::print("{}\n", options.json ? json_of(made).whole() : made.task);
}

}  // namespace

std::optional<std::string> contradiction(const TaskCommandOptions& options) {
  if (options.tasks.empty() && !chooses(options)) return "name tasks, or choose them by --queue and --state";
  if (chooses(options) && options.query.state.empty()) return "--state says which of the queue's tasks";
  if (!options.tasks.empty() && chooses(options)) return "name tasks or choose them, not both";
  if (!options.query.queue.empty() && options.all_queues)
    return "--queue and --all-queues exclude each other";
  if (chooses(options) && options.query.queue.empty() && !options.all_queues)
    return "--queue says whose tasks; --all-queues takes those of every queue";
  if (!options.tasks.empty() && options.dry_run) return "--dry-run is for tasks that are chosen";
  if (!options.key.empty() && options.tasks.size() != 1)
    return "a key names one task, and there may be several";
  return {};
}

int task_cancel(client::Client& client, const TaskCommandOptions& options) {
  if (chooses(options)) {
    return act_on_chosen<void>(
        client, options, "cancelled",
        [&](const std::string& task, client::Callback<void> then) {
          client.cancel(task, options.actor, options.note, std::move(then));
        },
        [&](const std::string& task, const Status&) {
          tell_cancelled(task, options);
          return Effect::done;
        });
  }
  return do_each(options.tasks, format_of(options.json), [&](const std::string& task) -> Status {
    if (auto done = client.cancel(task, options.actor, options.note); !done) return done;
    tell_cancelled(task, options);
    return {};
  });
}

int task_requeue(client::Client& client, const TaskCommandOptions& options) {
  if (chooses(options)) {
    // The task stays as it is, dead or failed; under this key it is handed in once however often this is run.
    return act_on_chosen<client::Submitted>(
        client, options, "requeued",
        [&](const std::string& task, client::Callback<client::Submitted> then) {
          client.requeue(task, "requeue:" + task, std::move(then));
        },
        [&](const std::string&, const Result<client::Submitted>& made) {
          tell_requeued(*made, options);
          return made->existed ? Effect::done_before : Effect::done;
        });
  }
  return do_each(options.tasks, format_of(options.json), [&](const std::string& task) -> Status {
    const auto made = client.requeue(task, options.key);
    if (!made) return std::unexpected(made.error());
    tell_requeued(*made, options);
    return {};
  });
}

}  // namespace baton::cli
