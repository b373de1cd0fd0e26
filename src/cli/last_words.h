// What is said when a signal ends us in the middle, and nobody could know otherwise: how to go on, or what is
// left behind.
#pragma once

#include <array>
#include <csignal>
#include <string>

namespace baton::cli {

class LastWords {
 public:
  explicit LastWords(const std::string& text);  // one at a time
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

 private:
  static constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kEnding.size()> before_{};
};

}  // namespace baton::cli
