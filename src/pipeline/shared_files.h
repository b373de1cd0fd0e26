// Files in a folder that several machines share: written as a whole, taken by renaming, aged by the file
// system's own clock. What was done is durable, names too.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random_name.h"
#include "base/result.h"
#include "base/time.h"

namespace baton::pipeline {

class SharedFiles {
 public:
  explicit SharedFiles(std::string directory) : directory_(std::move(directory)) {}
  ~SharedFiles();
  SharedFiles(const SharedFiles&) = delete;
  SharedFiles& operator=(const SharedFiles&) = delete;

  Status make_folder(const std::string& name) const;  // and those above it
  // NOT_FOUND, if there is none.
  Result<std::string> read(const std::string& name) const;
  // All of it or nothing, durably; over one that is there.
  Status write(const std::string& name, std::string_view text) const;
  // False: there is one already, and it stays as it is.
  Result<bool> write_new(const std::string& name, std::string_view text) const;
  // False: somebody else was faster.
  Result<bool> rename(const std::string& from, const std::string& to) const;
  void remove(const std::string& name) const;  // if it is there
  bool exists(const std::string& name) const;
  Status touch(const std::string& name) const;  // NOT_FOUND, if it is not there any more
  // How long ago it was written or touched. Nothing, if it is not there.
  Result<std::optional<Duration>> age(const std::string& name) const;
  // In order; without those with a dot in front, which are being written, or the file system's own. None, if
  // there is no such folder.
  Result<std::vector<std::string>> list(const std::string& folder) const;

 private:
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  Result<std::string> write_aside(const std::string& name, std::string_view text) const;

  const std::string directory_;
  const std::string clock_ = ".clock-" + random_name();  // a file that tells what time it is there
  mutable std::atomic<bool> has_clock_ = false;
};

// The name of a file is durable only when what it stands in is. False: errno says why.
bool sync_name(const std::string& path);

// As part of a file's name: what is no letter, digit, underscore or dot, and a dot at the beginning, is
// written as %XX, and what gets too long so is cut off and told apart by a hash.
std::string as_file_name(std::string_view text);

}  // namespace baton::pipeline
