#include "cli/top.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/output.h"
#include "cli/quantities.h"
#include "cli/terminal.h"
#include "cli/top_frame.h"
#include "client/call.h"

namespace baton::cli {
namespace {

constexpr Duration kAnswerMax = seconds(2);  // a view that stands still for longer is of no use
constexpr Duration kBetweenSamples = milliseconds(250);
constexpr Duration kEveryMin = milliseconds(100);  // nobody reads faster, and each costs three queries

Result<Sample> take_sample(client::Client& client) {
  auto stats = client.stats(kAnswerMax);
  if (!stats) return std::unexpected(stats.error());
  auto queues = client.queues({}, kAnswerMax);
  if (!queues) return std::unexpected(queues.error());
  auto workers = client.workers({}, kAnswerMax);
  if (!workers) return std::unexpected(workers.error());
  return Sample{.at_ms = client::now_ms(),
                .stats = std::move(*stats),
                .queues = std::move(queues->queues),
                .workers = std::move(workers->workers)};
}

std::string place_of(const TopOptions& options) {
  return fmt::format("{}", fmt::join(options.connection.addresses, ","));
}

int print_once(client::Client& client, const TopOptions& options) {
  const Format format = format_of(options.json);
  const auto before = take_sample(client);
  if (!before) return complain(before.error(), format);
  std::this_thread::sleep_for(std::chrono::milliseconds(std::min(options.every, kBetweenSamples).ms));
  const auto now = take_sample(client);
  if (!now) return complain(now.error(), format);
  if (options.json) {
    fmt::print("{}\n", frame_json(*before, *now));
    return 0;
  }
  for (const FrameLine& line : draw_frame(*before, *now, place_of(options), {.columns = SIZE_MAX}))
    fmt::print("{}\n", line.text);
  return 0;
}

// Until a key or a signal ends it. A coordinator that goes away is waited for.
int show(client::Client& client, const TerminalSignals& signals, const TopOptions& options) {
  auto before = take_sample(client);
  if (!before) return complain(before.error());
  Sample now = *before;
  std::string trouble;
  Terminal terminal(signals);
  for (std::int64_t next_at = client::now_ms() + options.every.ms;;) {
    // How old the numbers are comes first, for the line may be cut.
    const std::string said =
        trouble.empty() ? ""
                        : fmt::format("as of {} ago: {}",
                                      rough_text(milliseconds(client::now_ms() - now.at_ms)), trouble);
    terminal.draw(draw_frame(*before, now, place_of(options), terminal.size(), said));
    const Duration left = milliseconds(std::max<std::int64_t>(next_at - client::now_ms(), 0));
    const Terminal::Event event = terminal.wait(left);
    if (event == Terminal::Event::end || (event == Terminal::Event::key && terminal.key() == 'q')) return 0;
    if (client::now_ms() < next_at) continue;
    next_at = client::now_ms() + options.every.ms;
    auto sample = take_sample(client);
    trouble = sample ? "" : sample.error().message;
    if (!sample) continue;
    before = std::exchange(now, std::move(*sample));
  }
}

}  // namespace

int run_top(const TopOptions& options) {
  if (options.every < kEveryMin) {
    to_errors("baton: --every takes 100ms or more\n");
    return kExitUsage;
  }
  const bool once = options.once || options.json || !Terminal::is_there();
  const auto signals = once ? nullptr : std::make_unique<TerminalSignals>();
  return with_client(options.connection, format_of(options.json), [&](client::Client& client) {
    return once ? print_once(client, options) : show(client, *signals, options);
  });
}

void add_top_command(CommandLine& line) {
  // The closure that runs the command shares the options with the parser that fills them.
  auto options = std::make_shared<TopOptions>();
  Command top = line.command("top", "Shows queues, workers and the log, again and again; q ends it");
  top.duration("--every TIME", options->every, "How often")
      .flag("--once", options->once, "Print one picture, as is done where there is no terminal")
      .flag("--json", options->json, "Print one picture as JSON");
  add_connection_options(top, options->connection);
  top.footer("Example: " + line.program() + " top --every 2s").run([options] { return run_top(*options); });
}

}  // namespace baton::cli
