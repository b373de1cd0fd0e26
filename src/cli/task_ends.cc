#include "cli/task_ends.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "cli/in_order.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/task_text.h"
#include "client/call.h"

namespace baton::cli {
namespace {

constexpr std::size_t kUnderWayMax = 32;  // each has a connection of its own
constexpr Duration kForever = days(36'500);
constexpr Duration kWaitMax = hours(1);  // the protocol's limit, after which it is asked again

class Ends {
 public:
  Ends(client::Client& client, Duration within, Format format)
      : client_(client), until_(client::now_ms() + within.ms), format_(format) {}

  void wait_for(std::size_t number, const std::string& task) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return under_way_ < kUnderWayMax; });
      ++under_way_;
    }
    ask(number, task);
  }
  int finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return under_way_ == 0; });
    return exit_code_;
  }

 private:
  Duration left() const { return milliseconds(std::max<std::int64_t>(until_ - client::now_ms(), 0)); }

  void ask(std::size_t number, const std::string& task) {
    client_.wait(task, std::min(left(), kWaitMax), [this, number, task](const Result<client::Task>& seen) {
      if (seen && !seen->view.has_ended() && left() > Duration{}) return ask(number, task);
      in_order_.put(number, seen);
      const std::lock_guard lock(mutex_);
      --under_way_;
      changed_.notify_all();
    });
  }

  void print(const Result<client::Task>& seen) {
    if (!seen) return ends_with(complain(seen.error(), format_));
    const client::TaskView& view = seen->view;
    if (format_ == Format::json) {
      to_output("{}\n", json_of(*seen).whole());
    } else if (view.state == "completed") {
      // Somebody else's bytes: a program gets them as they are, a terminal must not obey them.
      const std::string result = is_terminal_ ? printable_lines(seen->result) : seen->result;
      std::fwrite(result.data(), 1, result.size(), stdout);
      if (!result.ends_with('\n')) std::fputc('\n', stdout);
    }
    std::fflush(stdout);
    if (view.state == "completed") return;
    to_errors("baton: {}: {}\n", view.task, ending_of(*seen));
    ends_with(view.has_ended() ? kExitEndedBadly : kExitTimeIsUp);
  }
  void ends_with(int exit_code) {
    const std::lock_guard lock(mutex_);
    exit_code_ = std::max(exit_code_, exit_code);
  }

  client::Client& client_;
  const std::int64_t until_;
  const Format format_;
  const bool is_terminal_ = ::isatty(STDOUT_FILENO) == 1;
  InOrder<Result<client::Task>> in_order_{
      [this](std::size_t, const Result<client::Task>& seen) { print(seen); }};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t under_way_ = 0;
  int exit_code_ = 0;
};

}  // namespace

int print_ends(client::Client& client, const std::vector<std::string>& tasks, std::optional<Duration> within,
               Format format) {
  Ends ends(client, within.value_or(kForever), format);
  for (std::size_t number = 0; number < tasks.size(); ++number) ends.wait_for(number, tasks[number]);
  return ends.finish();
}

}  // namespace baton::cli
