// MULTI and EXEC as framing: commands are gathered, then begun together, and their replies are one array.
// Each stands for itself all the same: one that is refused undoes none of the others.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::server {

class Transaction {
 public:
  static constexpr std::size_t kCommandsMax = 4096;
  static constexpr std::size_t kBytesMax = std::size_t{4} << 20;

  bool is_open() const { return open_; }
  bool is_spoiled() const { return spoiled_; }
  std::size_t bytes() const { return bytes_; }
  void open() { open_ = true; }
  // None of them will be begun.
  void spoil() {
    *this = {};
    open_ = spoiled_ = true;
  }
  // Keeps a command, if it may still be begun; false if there are too many.
  bool keep(std::span<const std::string_view> words) {
    if (spoiled_) return true;
    std::size_t bytes = bytes_;
    for (const std::string_view word : words) bytes += sizeof(std::string) + word.size();
    if (commands_.size() == kCommandsMax || bytes > kBytesMax) return false;
    bytes_ = bytes;
    commands_.emplace_back(words.begin(), words.end());
    return true;
  }
  // What was kept; it is over.
  std::vector<std::vector<std::string>> close() { return std::exchange(*this, {}).commands_; }

 private:
  std::vector<std::vector<std::string>> commands_;
  std::size_t bytes_ = 0;
  bool open_ = false;
  bool spoiled_ = false;  // one of them was refused already
};

}  // namespace baton::server
