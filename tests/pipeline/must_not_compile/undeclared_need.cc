// says: the body takes a Context& and then one argument for each need
#include "pipeline/context.h"
#include "pipeline/pipeline.h"

void define(baton::pipeline::Pipeline& pipeline) {
  pipeline.add("test").run([](baton::pipeline::Context&, const std::string& version) { (void)version; });
}
