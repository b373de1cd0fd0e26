// says: it needs a result that cannot leave the master: call pin_to_master()
#include <memory>

#include "pipeline/context.h"
#include "pipeline/pipeline.h"

void define(baton::pipeline::Pipeline& pipeline) {
  auto open = pipeline.add("open").pin_to_master().run(
      [](baton::pipeline::Context&) { return std::make_unique<int>(7); });
  pipeline.add("use", open).run([](baton::pipeline::Context&, const std::unique_ptr<int>&) {});
}
