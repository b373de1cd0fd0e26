#include "pipeline/html_report.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <vector>

#include "pipeline/drawing.h"
#include "pipeline/markup.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kLogBytesMax = std::size_t{256} << 10;  // of one module, the end of it
constexpr std::size_t kGraphNodesMax = 400;                   // beyond it nobody sees anything in it

constexpr char kStyle[] = R"(
:root { --page: #fbfbfd; --card: #fff; --ink: #1c2430; --soft: #66707f; --line: #dde2ea; --good: #2f8f5b; --bad: #c8362d;
  --warn: #b87a12; --idle: #8a94a6; --cached: #3f74c9; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --card: #1c2027; --ink: #e4e8ee; --soft: #98a2b3;
  --line: #303641; --good: #4bb97f; --bad: #ef6a61; --warn: #d9a03c; --idle: #798397; --cached: #75a2ec; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 2rem clamp(1rem, 4vw, 4rem); background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; } h2 { font-size: 1.05rem; margin: 2.2rem 0 .7rem; }
.soft { color: var(--soft); } .outcome { font-weight: 600; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem; overflow-x: auto; }
.counts { display: flex; flex-wrap: wrap; gap: .6rem; margin-top: 1rem; }
.counts span { border: 1px solid var(--line); border-radius: 99px; padding: .15rem .8rem; background: var(--card); }
table { border-collapse: collapse; width: 100%; } th { text-align: left; color: var(--soft); font-weight: 500; }
th, td { padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; } td.number, th.number { text-align: right; white-space: nowrap; }
code, pre { font: 12.5px/1.45 ui-monospace, monospace; } td code { overflow-wrap: anywhere; }
pre { margin: .5rem 0 0; padding: .8rem; background: var(--page); border-radius: 6px; max-height: 28rem; overflow: auto;
  white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; } details + details { margin-top: .5rem; }
.succeeded, .restored { color: var(--good); } .failed, .timed-out { color: var(--bad); font-weight: 600; }
.cached { color: var(--cached); } .cancelled, .dependency-failed, .ignored-failure { color: var(--warn); }
.skipped { color: var(--idle); }
svg .module rect { stroke-width: 1.5; } svg .module { font-weight: 400; }
svg .module.succeeded rect, svg .module.restored rect { stroke: var(--good); } svg .module.cached rect { stroke: var(--cached); }
svg .module.failed rect, svg .module.timed-out rect { stroke: var(--bad); stroke-width: 2.5; } svg .module.skipped rect { stroke: var(--idle); }
svg .module.cancelled rect, svg .module.dependency-failed rect, svg .module.ignored-failure rect { stroke: var(--warn); }
.lane { display: grid; grid-template-columns: 9rem 1fr; align-items: center; gap: .8rem; margin: .25rem 0; min-width: 40rem; }
.track { position: relative; height: 1.5rem; background: var(--page); border-radius: 5px; }
.bar { position: absolute; top: 2px; bottom: 2px; min-width: 3px; border-radius: 4px; background: currentColor; overflow: hidden; }
.bar span { color: var(--page); font-size: 11px; padding: 0 .35rem; line-height: 1.25rem; white-space: nowrap; font-weight: 400; }
.axis { color: var(--soft); font-size: 12px; display: flex; justify-content: space-between; }
)";

std::string took_text(Duration took) {
  char text[32];
  if (took.ms < 1000)
    std::snprintf(text, sizeof text, "%d ms", static_cast<int>(took.ms));
  else if (took.ms < 60'000)
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(took.ms) / 1000);
  else
    std::snprintf(text, sizeof text, "%d min %02d s", static_cast<int>(took.ms / 60'000),
                  static_cast<int>(took.ms / 1000 % 60));
  return text;
}

std::string class_of(ModuleStatus status) {
  std::string name(word(status));
  std::ranges::replace(name, ' ', '-');
  std::ranges::replace(name, '_', '-');
  return name;
}

class Page {
 public:
  Page(const Graph& graph, const RunReport& report, const std::function<std::string(const std::string&)>& log)
      : graph_(graph), report_(report), log_(log) {}

  std::string text() {
    put_head();
    put_table();
    put_timeline();
    put_workers();
    if (graph_.size() <= kGraphNodesMax) put_graph();
    put_logs();
    return std::move(out_) + "</body></html>\n";
  }

 private:
  void put_head() {
    const std::string name = escaped(report_.pipeline);
    const bool is_good = report_.outcome == RunOutcome::succeeded;
    const std::time_t seconds = report_.began_at.ms / 1000;
    char began[40];
    std::tm day{};
    std::strftime(began, sizeof began, "%Y-%m-%d %H:%M:%S UTC", ::gmtime_r(&seconds, &day));
    out_ =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
        "content=\"width=device-width\">\n<title>" +
        name + " " + std::string(word(report_.outcome)) + "</title>\n<style>" + kStyle +
        "</style></head><body>\n" + "<h1>" + name + " <span class=\"outcome " +
        (is_good ? "succeeded" : "failed") + "\">" + std::string(word(report_.outcome)) +
        "</span></h1>\n<div class=\"soft\">run " + escaped(report_.run) + ", " + began + ", " +
        took_text(report_.took) + (report_.reason.empty() ? "" : "; " + escaped(report_.reason)) +
        "</div>\n<div class=\"counts\">";
    std::map<ModuleStatus, std::size_t> counts;
    for (const ModuleReport& one : report_.modules) ++counts[one.status];
    for (const auto& [status, count] : counts)
      out_ += "<span class=\"" + class_of(status) + "\">" + std::to_string(count) + " " +
              std::string(word(status)) + "</span>";
    out_ += "</div>\n";
  }

  void put_table() {
    out_ +=
        "<h2>Modules</h2>\n<div class=\"card\"><table><tr><th>module</th><th>status</th><th "
        "class=\"number\">took</th><th class=\"number\">waited</th><th>where</th><th>why</th></tr>\n";
    for (const ModuleReport* one : worst_first(report_)) {
      out_ += "<tr><td><code>" + escaped(one->id) + "</code></td><td class=\"" + class_of(one->status) +
              "\">" + std::string(word(one->status)) + "</td><td class=\"number\">" +
              (one->tries > 0 ? took_text(one->took) : "") + "</td><td class=\"number\">" +
              (one->tries > 0 ? took_text(queue_wait(*one)) : "") + "</td><td>" + escaped(one->worker) +
              "</td><td>" + escaped(why(*one)) + "</td></tr>\n";
    }
    out_ += "</table></div>\n";
  }

  // A line for each place of a worker: what ran there, from when to when.
  void put_timeline() {
    std::map<std::string, std::vector<std::vector<const ModuleReport*>>> lanes;
    std::vector<const ModuleReport*> ran;
    for (const ModuleReport& one : report_.modules) {
      if (one.tries > 0 && !one.worker.empty()) ran.push_back(&one);
    }
    if (ran.empty()) return;
    std::ranges::stable_sort(ran, {}, &ModuleReport::began_at);
    for (const ModuleReport* one : ran) {
      auto& places = lanes[one->worker];
      const auto is_free = [&](const auto& place) {
        return place.back()->began_at + place.back()->took <= one->began_at;
      };
      const auto place = std::ranges::find_if(places, is_free);
      place == places.end() ? places.push_back({one}) : place->push_back(one);
    }
    out_ += "<h2>Timeline</h2>\n<div class=\"card\">\n";
    for (const auto& [worker, places] : lanes) {
      bool is_first = true;
      for (const auto& place : places) {
        out_ += "<div class=\"lane\"><div class=\"soft\">" + (is_first ? escaped(worker) : std::string()) +
                "</div><div class=\"track\">";
        for (const ModuleReport* one : place) put_bar(*one);
        out_ += "</div></div>\n";
        is_first = false;
      }
    }
    out_ += "<div class=\"lane\"><div></div><div class=\"axis\"><span>0</span><span>" +
            took_text({report_.took.ms / 2}) + "</span><span>" + took_text(report_.took) +
            "</span></div></div></div>\n";
  }

  void put_workers() {
    out_ +=
        "<h2>Workers</h2>\n<div class=\"card\"><table><tr><th>worker</th><th "
        "class=\"number\">modules</th><th "
        "class=\"number\">busy</th><th class=\"number\">idle</th></tr>\n";
    for (const WorkerTimes& one : report_.times) {
      out_ += "<tr><td>" + (one.index == 0 ? "master" : "worker " + std::to_string(one.index)) +
              "</td><td class=\"number\">" + std::to_string(one.modules) + "</td><td class=\"number\">" +
              took_text(one.busy) + "</td><td class=\"number\">" + took_text(one.idle) + "</td></tr>\n";
    }
    out_ += "</table></div>\n";
  }

  void put_bar(const ModuleReport& one) {
    const auto percent = [&](Duration time) {
      const double part =
          static_cast<double>(time.ms) / static_cast<double>(std::max<std::int64_t>(1, report_.took.ms));
      char text[16];
      std::snprintf(text, sizeof text, "%.2f%%", 100 * std::clamp(part, 0.0, 1.0));
      return std::string(text);
    };
    out_ += "<div class=\"bar " + class_of(one.status) + "\" style=\"left:" + percent(one.began_at) +
            ";width:" + percent(one.took) + "\" title=\"" + escaped(one.id) + ", " + took_text(one.took) +
            "\"><span>" + escaped(one.id) + "</span></div>";
  }

  void put_graph() {
    out_ += "<h2>Graph</h2>\n<div class=\"card\">\n" +
            svg_of(graph_, [this](NodeIndex node) { return class_of(report_.modules[node].status); }) +
            "</div>\n";
  }

  void put_logs() {
    out_ += "<h2>What was said</h2>\n<div class=\"card\">\n";
    bool is_any = false;
    for (const ModuleReport* one : worst_first(report_)) {
      std::string said = log_(one->id);
      if (said.empty()) said = one->failure.detail;
      if (said.empty()) continue;
      is_any = true;
      const bool is_cut = said.size() > kLogBytesMax;
      if (is_cut) said.erase(0, said.size() - kLogBytesMax);
      const bool failed = one->status == ModuleStatus::failed || one->status == ModuleStatus::timed_out;
      out_ += std::string("<details") + (failed ? " open" : "") + "><summary class=\"" +
              class_of(one->status) + "\"><code>" + escaped(one->id) + "</code></summary><pre>" +
              (is_cut ? "…\n" : "") + escaped(said) + "</pre></details>\n";
    }
    out_ += is_any ? "</div>\n" : "<span class=\"soft\">Nothing.</span></div>\n";
  }

  const Graph& graph_;
  const RunReport& report_;
  const std::function<std::string(const std::string&)>& log_;
  std::string out_;
};

}  // namespace

std::string html_of(const Graph& graph, const RunReport& report,
                    const std::function<std::string(const std::string& module)>& log) {
  return Page(graph, report, log).text();
}

}  // namespace baton::pipeline
