// A pipeline as a program of its own.
//
//   ./ci                               run it here
//   ./ci validate | plan | graph       look at it; --help tells how
//   ./ci --instance 0 --total 3        its master, of three instances; the others are workers
//   ./ci --jobs 8 --cap docker         so many modules at a time; what this machine can do
//   ./ci --instance 1 … --reserved     a worker that runs only what names one of its --cap
//
// BATON_INSTANCE, BATON_TOTAL, BATON_RUN and BATON_CAPS (with commas) say the same; a flag wins over a
// variable, a variable over what the program says. Secrets that modules need are variables too. Ctrl-C
// cancels.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"
#include "pipeline/report.h"

namespace baton::pipeline {

struct ProgramOptions {
  std::string command = "run";
  DistributedOptions distributed;
};

// What the words, and variables as `variable` gives them, say. INVALID_REQUEST tells what makes no sense.
Result<ProgramOptions> program_options(const Pipeline& pipeline, const std::vector<std::string>& words,
                                       const std::function<const char*(const char*)>& variable);

// Runs the instance that the options say, with secrets from the environment. Returns what to exit with.
int run_program(const Pipeline& pipeline, const ProgramOptions& options, RunObserver* observer = nullptr,
                const std::stop_token& stop = {});

}  // namespace baton::pipeline
