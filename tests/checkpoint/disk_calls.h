// What this process asks of the disk so that names and bytes last, in the order in which it does; a test may
// let one of these calls fail. Every fsync and link of the program goes through here.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace baton::checkpoint {

class DiskCalls {
 public:
  // Asked before each call, which is "fsync PATH" or "link PATH": 0, or an errno in its place.
  using Fault = std::function<int(const std::string& call)>;

  // Of what lies below `directory`. There is one at a time.
  explicit DiskCalls(std::string directory, Fault fault = {});
  ~DiskCalls();
  DiskCalls(const DiskCalls&) = delete;
  DiskCalls& operator=(const DiskCalls&) = delete;

  // So far; what follows `directory`, the names of attempts and of files aside without their chance.
  std::vector<std::string> all() const;

  int note(const std::string& call, const std::string& path);

 private:
  const std::string directory_;
  const Fault fault_;
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
};

}  // namespace baton::checkpoint
