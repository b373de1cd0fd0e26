// What a person sees of a run. On a terminal: a line for each module that runs, written over, above them
// those that are over. Elsewhere: what each module said, as a group when it is over, so that those that ran
// together do not mix.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/report.h"
#include "pipeline/schedule.h"

namespace baton::cli {

struct RunViewOptions {
  bool on_terminal = false;
  bool verbose = false;           // what modules said is shown on a terminal too
  bool has_workers_here = false;  // that end with this process
  pipeline::History history;
};

class RunView : public pipeline::RunObserver {
 public:
  explicit RunView(RunViewOptions options) : options_(std::move(options)) {}

  void began(const pipeline::Graph& graph, const std::string& run) override;
  void changed(const pipeline::ModuleReport& report, const std::shared_ptr<const void>& value) override;
  void said(const pipeline::LogLine& line) override;
  void progressed(pipeline::NodeIndex node, double part) override;
  void noticed(const std::string& text) override;
  void stopping(std::size_t modules) override;
  void time_passed() override;
  bool wants_time() const override { return options_.on_terminal; }
  void ended(const pipeline::RunReport& report) override;
  // This process is about to end, with all that it has started: says so, and nothing else from then on.
  // Called on any thread; whoever cannot be told is not waited for.
  void say_last_words();

 private:
  struct Running {
    std::string id;
    std::string worker;
    std::int64_t since = 0;
  };

  void line(const std::string& text);  // that stays
  void erase();
  void draw();
  void show_group(const std::string& module, std::size_t lines_max);
  std::string running_line(const Running& one, double part) const;

  std::string killed_text() const;

  const RunViewOptions options_;
  std::timed_mutex mutex_;  // guards what follows, and that lines are written one by one
  const pipeline::Graph* graph_ = nullptr;
  std::size_t over_ = 0;
  std::size_t drawn_ = 0;  // lines that will be written over
  std::map<pipeline::NodeIndex, Running> running_;
  std::map<pipeline::NodeIndex, double> progress_;
  std::map<std::string, std::vector<std::string>> said_;
  std::map<std::string, std::size_t> left_out_;
};

// What to do until a run has stopped that was cancelled.
std::string stop_text(std::size_t modules);

}  // namespace baton::cli
