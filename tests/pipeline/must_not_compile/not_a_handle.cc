// says: a module needs handles that add(...).run(...) returned
#include "pipeline/context.h"
#include "pipeline/pipeline.h"

void define(baton::pipeline::Pipeline& pipeline) {
  pipeline.add("test", 7).run([](baton::pipeline::Context&, int) {});
}
