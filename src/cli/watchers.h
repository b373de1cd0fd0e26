// Several that watch the same run, told in the order in which they were added.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/run.h"

namespace baton::cli {

class Watchers : public pipeline::RunObserver {
 public:
  void add(pipeline::RunObserver& one) { all_.push_back(&one); }
  void began(const pipeline::Graph& graph, const std::string& run) override {
    for (auto* one : all_) one->began(graph, run);
  }
  void changed(const pipeline::ModuleReport& report, const std::shared_ptr<const void>& value) override {
    for (auto* one : all_) one->changed(report, value);
  }
  void said(const pipeline::LogLine& line) override {
    for (auto* one : all_) one->said(line);
  }
  void progressed(pipeline::NodeIndex node, double part) override {
    for (auto* one : all_) one->progressed(node, part);
  }
  void noticed(const std::string& text) override {
    for (auto* one : all_) one->noticed(text);
  }
  void missing_a_worker_here() override {
    for (auto* one : all_) one->missing_a_worker_here();
  }
  void stopping(std::size_t modules) override {
    for (auto* one : all_) one->stopping(modules);
  }
  void told_to_stop() override {
    for (auto* one : all_) one->told_to_stop();
  }
  void time_passed() override {
    for (auto* one : all_) one->time_passed();
  }
  bool wants_time() const override {
    return std::ranges::any_of(all_, [](const auto* one) { return one->wants_time(); });
  }
  void ended(const pipeline::RunReport& report) override {
    for (auto* one : all_) one->ended(report);
  }

 private:
  std::vector<pipeline::RunObserver*> all_;
};

}  // namespace baton::cli
