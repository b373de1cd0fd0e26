// A directory that lives as long as a test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace baton {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    path_ = (std::filesystem::temp_directory_path() / "baton-test-XXXXXX").string();
    if (!::mkdtemp(path_.data())) std::abort();
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace baton
