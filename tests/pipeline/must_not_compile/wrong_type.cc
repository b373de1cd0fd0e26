// says: the body takes a Context& and then one argument for each need
#include "pipeline/context.h"
#include "pipeline/pipeline.h"

void define(baton::pipeline::Pipeline& pipeline) {
  auto build = pipeline.add("build").run([](baton::pipeline::Context&) { return std::string("1.4"); });
  pipeline.add("test", build).run([](baton::pipeline::Context&, const std::vector<int>&) {});
}
