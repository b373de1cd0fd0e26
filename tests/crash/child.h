// A process that a test starts, listens to and kills. Nothing outlives the object.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/crash/power_shim.h"

namespace baton::crash {

using Deadline = std::chrono::steady_clock::time_point;
inline Deadline after_ms(std::int64_t ms) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
}

struct ChildOptions {
  std::vector<std::string> command;                              // the first is the program's path
  std::vector<std::pair<std::string, std::string>> environment;  // in addition to our own
  uid_t run_as = 0;                                              // 0: as we are
};

// How a process ended.
struct Exit {
  int code = -1;   // of its own
  int signal = 0;  // or by this
};

class Child {
 public:
  explicit Child(const ChildOptions& options);
  ~Child();  // kills it if it runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Hands over the lines it wrote to its standard output until `deadline`, or until `line` returns false, or
  // it has closed its output; false in the last case.
  bool listen(Deadline deadline, const std::function<bool(const std::string&)>& line);
  void signal(int number);  // to this process alone
  // Stops it, and returns when each of its threads stands still; a flush under way may take its time.
  void stop();
  // Waits for the end. A process that does not end by then is killed, and its signal says so.
  Exit wait(Deadline deadline);
  const std::string& errors() const { return errors_; }  // its standard error, so far

 private:
  bool take(std::int64_t wait_ms);

  pid_t pid_ = -1;
  bool ended_ = false;
  Exit exit_;
  int output_ = -1;
  int error_output_ = -1;
  std::string partial_;
  std::vector<std::string> lines_;
  std::size_t next_ = 0;
  std::string errors_;
};

// Runs a program to its end.
struct Ran {
  Exit exit;
  std::vector<std::string> lines;
  std::string errors;
};
Ran run(const ChildOptions& options, std::int64_t limit_ms = 30'000);

// A file that a process under the shim shares with us, and the environment that makes it do so.
class Shim {
 public:
  Shim(const std::string& page_path, std::string directory);
  ~Shim();
  Shim(const Shim&) = delete;
  Shim& operator=(const Shim&) = delete;

  std::vector<std::pair<std::string, std::string>> environment() const;
  void reset();  // counters to zero
  ShimPage& page() { return *page_; }

  std::uint64_t seed = 1;
  std::uint64_t early_percent = 0;
  std::uint64_t sync_us = 0;
  std::string fail;

 private:
  const std::string page_path_;
  const std::string directory_;
  ShimPage* page_;
};

}  // namespace baton::crash
