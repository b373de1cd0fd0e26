// Somebody else's pipeline, and somebody else's coordinator, which is held to its contract.
#include <iostream>

#include "pipeline/context.h"
#include "pipeline/contract.h"
#include "pipeline/memory_coordinator.h"
#include "pipeline/pipeline.h"
#include "pipeline/pipeline_file.h"

namespace {

using namespace baton;
using namespace baton::pipeline;

class Mine : public MemoryCoordinator {
 public:
  using MemoryCoordinator::MemoryCoordinator;
};

class Subject : public contract::Subject {
 public:
  std::unique_ptr<DistributedCoordinator> connect() override { return std::make_unique<Mine>(exchange_); }
  Duration lease() const override { return kLostAfter; }
  void let_pass(Duration time) override {
    now_ms_ += time.ms;
    exchange_.time_has_passed();
  }

 private:
  std::atomic<std::int64_t> now_ms_ = 1;
  MemoryExchange exchange_{{.now = [this] { return Instant{now_ms_}; }}};
};

}  // namespace

int main(int argc, char** argv) {
  for (const contract::Check& check : contract::checks()) {
    Subject subject;
    if (const Status kept = check.run(subject); !kept) {
      std::cerr << check.promise << ": " << kept.error().message << "\n";
      return 1;
    }
  }
  if (!PipelineFile::parse("version: 1\nmodules: { a: { run: ls } }", "ci.yaml")) return 1;
  Pipeline pipeline("greeting");
  auto word = pipeline.add("word").run([](Context&) { return std::string("hello"); });
  pipeline.add("say", word).run([](Context& context, const std::string& text) {
    context.exec({"echo", text});
  });
  return pipeline.main(argc, argv);
}
