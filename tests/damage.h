// For tests: spoils what a file says.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace baton {

// The first byte of every occurrence of `text` in the files of a directory.
inline void damage(const std::string& directory, const std::string& text) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(file)), {});
    file.clear();
    for (std::size_t at = content.find(text); at != std::string::npos; at = content.find(text, at + 1))
      file.seekp(static_cast<std::streamoff>(at)), file.put('#');
  }
}

}  // namespace baton
