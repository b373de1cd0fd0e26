// Where modules run: this process on this machine, and what bodies find there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/secrets.h"

namespace baton::pipeline {

enum class Stream : std::uint8_t { output, errors, note };  // of a command, or said by the body itself

struct LogLine {
  std::string module;
  std::uint32_t attempt = 1;
  Stream stream = Stream::note;
  std::string text;  // without secrets, without the end of the line
};

struct Site {
  std::string name = "master";
  std::vector<std::string> capabilities;  // canonical
  std::string directory;                  // that commands run in; empty: the current one
  std::string run;                        // its id
  std::map<std::string, std::string> parameters;
  Secrets secrets;
  std::function<void(const LogLine&)> log;                               // called from many threads
  std::function<void(const std::string& module, double part)> progress;  // likewise; either may be empty
};

}  // namespace baton::pipeline
