#include "pipeline/scratch.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace baton::pipeline {

Scratch::~Scratch() {
  std::error_code ignored;  // nobody is left to be told
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::string Scratch::new_path() {
  const std::lock_guard lock(mutex_);
  if (folder_.empty()) {
    std::string path = (std::filesystem::temp_directory_path() / "baton-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr)
      throw std::runtime_error("no temporary folder could be made at " + path);
    folder_ = path;
  }
  return folder_ + "/" + std::to_string(++number_);
}

}  // namespace baton::pipeline
