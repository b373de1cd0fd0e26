#include "cli/run_view.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "cli/output.h"
#include "cli/quantities.h"
#include "cli/table.h"
#include "client/call.h"
#include "pipeline/fleet.h"

namespace baton::cli {
namespace {

using pipeline::ModuleReport;
using pipeline::ModuleStatus;

constexpr std::size_t kLinesKept = 1000;      // of what a module said, before it is shown
constexpr std::size_t kLinesOfAFailure = 40;  // on a terminal
constexpr std::size_t kRunningShown = 12;

const char* mark(ModuleStatus status) {
  switch (status) {
    case ModuleStatus::succeeded:
    case ModuleStatus::restored: return "ok";
    case ModuleStatus::cached: return "cached";
    case ModuleStatus::ignored_failure: return "failed, as it may";
    case ModuleStatus::failed: return "FAILED";
    case ModuleStatus::timed_out: return "TIMED OUT";
    case ModuleStatus::skipped: return "skipped";
    case ModuleStatus::cancelled: return "cancelled";
    case ModuleStatus::dependency_failed: return "not run";
    default: return "";
  }
}
const char* colour(ModuleStatus status) {
  if (pipeline::has_value(status)) return "\x1b[32m";
  if (status == ModuleStatus::failed || status == ModuleStatus::timed_out) return "\x1b[31;1m";
  return "\x1b[33m";
}

struct Screen {
  std::size_t columns = 100;
  std::size_t lines = 25;
};
Screen screen() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col <= 20 || size.ws_row <= 2) return {};
  return {size.ws_col, size.ws_row};
}

// As a terminal would leave it, without colours: what was written over is gone.
std::string as_shown(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  line.remove_prefix(line.rfind('\r') + 1);  // npos + 1 is 0
  std::string shown;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line.substr(at).starts_with("\x1b["))
      at = std::min(line.find_first_not_of("0123456789;?", at + 2), line.size());  // where it ends
    else
      shown += line[at];
  }
  return shown;
}

std::string erasing(std::size_t lines) { return lines > 0 ? fmt::format("\x1b[{}A\r\x1b[J", lines) : ""; }

std::string bar(double part, std::size_t width) {
  const auto full = static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(width));
  return "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
}

// Empty: something did, or was meant to.
std::string nothing_ran(const pipeline::Graph& graph, const pipeline::RunReport& report) {
  if (report.outcome != pipeline::RunOutcome::succeeded) return {};
  std::vector<const ModuleReport*> chosen;
  for (const ModuleReport& one : report.modules) {
    if (!graph[one.node].left_out) chosen.push_back(&one);
  }
  const auto is_skipped = [](const ModuleReport* one) { return one->status == ModuleStatus::skipped; };
  if (chosen.empty() || !std::ranges::all_of(chosen, is_skipped)) return {};
  const std::string who =
      chosen.size() == 1 ? "the only module was" : "all " + counted(chosen.size(), "module") + " were";
  return fmt::format("nothing ran: {} skipped; {}: {}", who, chosen.front()->id,
                     printable(why(*chosen.front()), 200));
}

// As far as it can be done at once.
void write_at_once(int descriptor, std::string_view text) {
  pollfd taker{.fd = descriptor, .events = POLLOUT, .revents = 0};
  if (::poll(&taker, 1, 0) == 1) (void)!::write(descriptor, text.data(), text.size());
}

}  // namespace

void RunView::began(const pipeline::Graph& graph, const std::string& run) {
  const std::lock_guard lock(mutex_);
  graph_ = &graph;
  line(fmt::format("{}: {}, run {}", graph.definition().name, counted(graph.size(), "module"), run));
}

void RunView::line(const std::string& text) {
  erase();
  to_output("{}\n", text);
  std::fflush(stdout);  // whoever follows the output of a build wants to see it now
}

void RunView::erase() {
  to_output("{}", erasing(drawn_));
  drawn_ = 0;
}

std::string RunView::running_line(const Running& one, double part) const {
  const Duration took{client::now_ms() - one.since};
  std::string text = fmt::format("  {:<30} {:>8}", one.id, rough_text(took));
  const auto known = options_.history.find(one.id);
  if (part <= 0 && known != options_.history.end() && known->second > Duration{}) {
    part = static_cast<double>(took.ms) / static_cast<double>(known->second.ms);
  }
  if (part > 0) text += " " + bar(std::min(part, 0.99), 20);
  if (known != options_.history.end() && known->second > took)
    text += " about " + rough_text(known->second - took) + " left";
  if (!one.worker.empty() && one.worker != "master") text += "  on " + one.worker;
  return text.substr(0, screen().columns - 1);
}

void RunView::draw() {
  if (!options_.on_terminal || graph_ == nullptr) return;
  erase();
  const Screen size = screen();
  const std::size_t shown_max = std::min(kRunningShown, size.lines - 2);  // more could not be written over
  for (const auto& [node, one] : running_) {
    if (drawn_ == shown_max) break;
    to_output("{}\n", running_line(one, progress_[node]));
    ++drawn_;
  }
  const double part =
      graph_->size() == 0 ? 1 : static_cast<double>(over_) / static_cast<double>(graph_->size());
  const std::size_t width = std::clamp<std::size_t>(size.columns, 34, 60) - 30;
  const std::string text =
      fmt::format("{} {} of {}, {} at work", bar(part, width), over_, graph_->size(), running_.size());
  to_output("{}\n", text.substr(0, size.columns - 1));
  ++drawn_;
  std::fflush(stdout);
}

void RunView::time_passed() {
  const std::lock_guard lock(mutex_);
  draw();
}

void RunView::progressed(pipeline::NodeIndex node, double part) {
  const std::lock_guard lock(mutex_);
  progress_[node] = part;
}

void RunView::changed(const ModuleReport& report, const std::shared_ptr<const void>&) {
  const std::lock_guard lock(mutex_);
  if (report.status == ModuleStatus::running)
    running_[report.node] = {report.id, report.worker, client::now_ms()};
  if (pipeline::is_final(report.status)) {
    running_.erase(report.node);
    ++over_;
    const std::string state = options_.on_terminal
                                  ? fmt::format("{}{}\x1b[0m", colour(report.status), mark(report.status))
                                  : mark(report.status);
    std::string text = fmt::format("{} {}", report.id, state);
    if (report.took > Duration{} || report.tries > 0) text += " in " + rough_text(report.took);
    if (!report.worker.empty() && report.worker != "master") text += " on " + report.worker;
    if (report.tries > 1) text += fmt::format(", {} tries", report.tries);
    if (report.attempt > 1) text += fmt::format(", begun {} times", report.attempt);
    if (const std::string reason = why(report); !reason.empty()) text += ": " + printable(reason, 400);
    line(text);
    const bool failed = report.failure.kind != pipeline::FailureKind::none;
    if (!options_.on_terminal || options_.verbose)
      show_group(report.id, SIZE_MAX);
    else if (failed)
      show_group(report.id, kLinesOfAFailure);
    if (failed && !said_.contains(report.id) && !report.failure.detail.empty())
      line("    | " + printable(report.failure.detail, 2000));
    said_.erase(report.id);
    left_out_.erase(report.id);
  }
  draw();
}

void RunView::show_group(const std::string& module, std::size_t lines_max) {
  const auto said = said_.find(module);
  if (said == said_.end()) return;
  const std::vector<std::string>& lines = said->second;
  const std::size_t first = lines.size() > lines_max ? lines.size() - lines_max : 0;
  if (first + left_out_[module] > 0)
    line(fmt::format("    … {} before", counted(first + left_out_[module], "line")));
  for (std::size_t i = first; i < lines.size(); ++i) line("    | " + printable(as_shown(lines[i]), 1000));
}

void RunView::said(const pipeline::LogLine& said) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string>& lines = said_[said.module];
  lines.push_back(said.text);
  if (lines.size() < kLinesKept) return;
  if (options_.on_terminal && !options_.verbose) {
    left_out_[said.module] += lines.size() / 2;
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(lines.size() / 2));
    return;
  }
  // One that says much is shown before it is over, so that nothing is lost if the run is killed.
  line(said.module + " says:");
  show_group(said.module, SIZE_MAX);
  lines.clear();
  draw();
}

void RunView::noticed(const std::string& text) {
  const std::lock_guard lock(mutex_);
  line("! " + printable(text, 1000));
  draw();
}

std::string stop_text(std::size_t modules) {
  return fmt::format("stopping{}; Ctrl-C again ends it at once",
                     modules == 0 ? "" : " " + counted(modules, "module"));
}

void RunView::stopping(std::size_t modules) {
  if (options_.on_terminal) noticed(stop_text(modules));
}

std::string RunView::killed_text() const {
  std::vector<std::string> killed, left;
  for (const auto& [node, one] : running_) {
    const bool is_here = options_.has_workers_here || one.worker.empty() || one.worker == "master";
    (is_here ? killed : left).push_back(one.id);
  }
  const auto named = [](std::vector<std::string>& all) {
    const std::size_t more = all.size() - std::min(all.size(), kRunningShown);
    all.resize(all.size() - more);
    return pipeline::joined(all) + (more > 0 ? fmt::format(" and {} more", more) : "");
  };
  return (killed.empty() ? "ended at once" : "killed " + named(killed)) +
         (left.empty() ? "" : "; left to the workers: " + named(left));
}

void RunView::say_last_words() {
  // Whoever has it may be held up by whoever does not read.
  if (!mutex_.try_lock_for(std::chrono::milliseconds(200))) return;
  const bool is_seen = options_.on_terminal && graph_ != nullptr;
  if (is_seen)
    write_at_once(STDOUT_FILENO, erasing(drawn_) + "! " + killed_text() + "\n");
  else
    write_at_once(STDERR_FILENO, "baton: " + killed_text() + "\n");
}

void RunView::ended(const pipeline::RunReport& report) {
  const std::lock_guard lock(mutex_);
  erase();
  Table table({{"module"}, {"status"}, {"took", Align::right}, {"where"}, {"why"}});
  const std::vector<const ModuleReport*> all = pipeline::worst_first(report);
  constexpr std::size_t kRowsMax = 60;
  for (std::size_t i = 0; i < all.size() && i < kRowsMax; ++i) {
    const ModuleReport& one = *all[i];
    table.row({one.id, std::string(pipeline::word(one.status)), one.tries > 0 ? rough_text(one.took) : "",
               one.worker, cell(why(one))});
  }
  to_output("\n");
  table.print();
  if (all.size() > kRowsMax) to_output("… and {} more\n", all.size() - kRowsMax);
  if (const std::string skipped = nothing_ran(*graph_, report); !skipped.empty()) {
    to_output("\n{}: {}\n", report.pipeline, skipped);
    std::fflush(stdout);
    return;
  }
  std::map<std::string_view, std::size_t> counts;
  for (const ModuleReport& one : report.modules) ++counts[pipeline::word(one.status)];
  std::string summary;
  for (const auto& [status, count] : counts)
    summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count, status);
  const bool is_by_itself =
      report.outcome == pipeline::RunOutcome::succeeded || report.outcome == pipeline::RunOutcome::failed;
  to_output("\n{} {} after {}{}: {}\n", report.pipeline, pipeline::word(report.outcome),
            rough_text(report.took), is_by_itself ? "" : " (" + printable(report.reason, 200) + ")", summary);
  std::fflush(stdout);
}

}  // namespace baton::cli
