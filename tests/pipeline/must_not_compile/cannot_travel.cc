// says: this result cannot be sent to another machine: give its type BATON_FIELDS
#include <memory>

#include "pipeline/context.h"
#include "pipeline/pipeline.h"

void define(baton::pipeline::Pipeline& pipeline) {
  pipeline.add("open").run([](baton::pipeline::Context&) { return std::make_unique<int>(7); });
}
