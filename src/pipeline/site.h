// Where modules run: this process on this machine, and what bodies find there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/blob_store.h"
#include "pipeline/scratch.h"
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
  std::shared_ptr<Scratch> scratch =
      std::make_shared<Scratch>();  // shared: a module that does not end may use it
  BlobStore* blobs = nullptr;       // for artifacts and large values; null: the coordinator's, if it has one
  std::function<void(const LogLine&)> log;                               // called from many threads
  std::function<void(const std::string& module, double part)> progress;  // likewise; either may be empty
};

}  // namespace baton::pipeline
