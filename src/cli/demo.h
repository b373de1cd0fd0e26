// A few tasks, workers that crash, fail and come back too late, and every entry that makes it into the log.
#pragma once

#include <string>

namespace baton::cli {

struct DemoOptions {
  std::string directory = "data";
  unsigned tasks = 12;
  unsigned workers = 3;
};

int run_demo(const DemoOptions& options);

}  // namespace baton::cli
