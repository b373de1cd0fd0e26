#include "pipeline/glob.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <span>

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;

// Its runs, what it says of a folder that it has made, and what it is about to unpack.
bool is_of_baton(const fs::path& name) { return name == ".baton" || name.native().starts_with(".baton-"); }

class Search {
 public:
  explicit Search(const std::string& directory) : root_(directory.empty() ? "." : directory) {}

  void look(const fs::path& at, std::span<const std::string> parts) {
    if (parts.empty()) return take(at);
    const std::string& part = parts.front();
    if (part == "**") {
      look(at, parts.subspan(1));
      for (const fs::path& name : names_in(at, "*")) {
        if (is_folder(at / name)) look(at / name, parts);
      }
    } else if (part.find_first_of("*?[") == std::string::npos) {
      if (fs::symlink_status(root_ / at / part, gone_).type() != fs::file_type::not_found)
        look(at / part, parts.subspan(1));
    } else {
      for (const fs::path& name : names_in(at, part)) look(at / name, parts.subspan(1));
    }
  }

  std::vector<std::string> found() {
    std::ranges::sort(found_);
    const auto repeated = std::ranges::unique(found_);
    found_.erase(repeated.begin(), repeated.end());
    return std::move(found_);
  }

 private:
  bool is_folder(const fs::path& path) {
    return fs::symlink_status(root_ / path, gone_).type() == fs::file_type::directory;
  }

  std::vector<fs::path> names_in(const fs::path& folder, const std::string& pattern) {
    std::vector<fs::path> names;
    for (const auto& entry : fs::directory_iterator(root_ / folder, gone_)) {
      const fs::path name = entry.path().filename();
      if (!is_of_baton(name) && ::fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0)
        names.push_back(name);
    }
    return names;
  }

  void take(const fs::path& path) {
    if (!is_folder(path)) {
      found_.push_back(path.lexically_normal().string());
      return;
    }
    for (const auto& entry : fs::directory_iterator(root_ / path, gone_)) {
      const fs::path name = entry.path().filename();
      if (!is_of_baton(name)) take(path / name);
    }
  }

  const fs::path root_;
  std::error_code gone_;  // what cannot be looked at is not there
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> files_matching(const std::string& directory, const std::string& pattern) {
  std::vector<std::string> parts;
  const fs::path path(pattern);
  for (const fs::path& part : path.relative_path()) {
    if (!part.empty() && part != ".") parts.push_back(part);
  }
  Search search(directory);
  search.look(path.root_path(), parts);
  return search.found();
}

}  // namespace baton::pipeline
