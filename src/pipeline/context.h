// What the body of a module finds around it. May be used from several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "pipeline/codec.h"
#include "pipeline/secrets.h"

namespace baton::pipeline {

struct CommandOptions {
  std::map<std::string, std::string> environment;  // besides ours
  std::string directory;                           // empty: that of the run
  std::string input;
  bool may_fail = false;  // another exit code than 0 is a result too
  bool quiet = false;     // what it says is kept and not logged
};
struct CommandResult {
  int exit_code = 0;
  std::string output;  // the beginning and the end, if it was more than a megabyte
  std::string errors;
  Duration took;
};
BATON_FIELDS(CommandResult, exit_code, output, errors, took)

// A command ended with another code than 0, or by a signal.
struct CommandFailed : std::runtime_error {
  CommandFailed(const std::string& message, int code, std::string last_words)
      : std::runtime_error(message), exit_code(code), detail(std::move(last_words)) {}
  int exit_code;
  std::string detail;
};
// It did not even begin: there is no such program, or it may not be run.
struct NotStarted : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The module was asked to stop.
struct Stopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Thrown by Context::skip().
struct Skipped {
  std::string reason;
};

struct Site;
struct GraphNode;
struct ArtifactRef;

class Context {
 public:
  // Made by whoever runs the module; site, node and artifacts outlive it.
  Context(const Site& site, const GraphNode& node, const std::vector<ArtifactRef>& artifacts,
          std::uint32_t attempt, std::stop_token stop);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  std::stop_token stop() const;                       // of this try
  std::uint32_t attempt() const { return attempt_; }  // 1, and one more for each worker that was lost with it
  const std::string& module() const;
  const std::string& worker() const;  // that it runs on
  std::optional<std::string> matrix_target() const;
  std::string matrix(const std::string& axis) const;  // value on one axis of a matrix; empty: there is none
  const std::map<std::string, std::string>& matrix_axes() const;
  const std::string& run_id() const;

  std::optional<std::string> parameter(const std::string& name) const;
  const std::map<std::string, std::string>& parameters() const;
  // One that the module declared; throws if this machine does not have it.
  const std::string& secret(const std::string& name) const;
  // A text that is as secret as those, as one that came from elsewhere. Before anything is said.
  void hide(const std::string& text) { secrets_.add("=" + text, text); }
  // What is masked wherever this module is heard: all secrets of this machine, and what was hidden.
  const Secrets& secrets() const { return secrets_; }

  void log(std::string_view text);
  void progress(double part);  // 0 to 1
  // A part of the body that has a name: it is told when it begins and how long it took, and an error bears
  // it.
  void step(const std::string& name, const std::function<void()>& body);
  [[noreturn]] void skip(std::string reason);

  // Runs a command in a process group of its own, which ends when the module is asked to stop. Throws
  // CommandFailed, NotStarted, or Stopped.
  CommandResult exec(const std::vector<std::string>& words, const CommandOptions& options = {});
  CommandResult shell(const std::string& script, const CommandOptions& options = {});  // sh -eu -c

  const std::string& directory() const;
  std::string temporary_directory();  // is removed when the module is over
  std::string temporary_file();       // the name of one that is not there yet; whoever makes it removes it

  // An artifact, now, of files below the folder of the run. Declared as produces(name) without paths, it is
  // up to the body which they are. Throws ArtifactFailed, which is a std::runtime_error.
  void store(const std::string& name, const std::vector<std::string>& paths);
  // One that consumes() declares, besides where it has been put before the body began: into a folder of its
  // own, which goes with the module. Of a matrix, each is in a folder by target.
  std::string fetch(const std::string& producer, const std::string& name);

  std::string last_words() const;  // of the last command
  std::vector<ArtifactRef> stored() const;

  // By whoever runs the module: it is tried again.
  void begin_try(std::stop_token stop);

 private:
  const Site& site_;
  const GraphNode& node_;
  const std::vector<ArtifactRef>& artifacts_;  // that it may consume
  const std::uint32_t attempt_;
  Secrets secrets_;
  mutable std::mutex mutex_;  // guards what follows
  std::stop_token stop_;
  std::string last_words_;
  std::string temporary_;
  std::vector<ArtifactRef> stored_;  // by the body, in this try
};

}  // namespace baton::pipeline
