// What is said when a signal ends us in the middle, and nobody could know otherwise: how to go on, or what is
// left behind.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::cli {

// A number, as it is when the words are said, and what stands before it. It outlives them.
struct LastCount {
  std::string before;
  const std::atomic<std::uint64_t>* count = nullptr;
};

class LastWords {
 public:
  // The counts come first, and `text` behind the last one. One at a time.
  explicit LastWords(const std::string& text, std::vector<LastCount> counts = {});
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

 private:
  static constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kEnding.size()> before_{};
};

}  // namespace baton::cli
