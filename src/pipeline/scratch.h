// A folder for what modules of this process need for a moment: made when it is needed, and gone with it.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace baton::pipeline {

class Scratch {
 public:
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Of a file that nobody else has, and that is not there yet. Throws if there can be no folder.
  std::string new_path();

 private:
  std::mutex mutex_;
  std::string folder_;
  std::uint64_t number_ = 0;
};

}  // namespace baton::pipeline
