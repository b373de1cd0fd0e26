// The whole terminal, for a view that is drawn again and again. Whatever ends the program, the terminal is
// given back as it was: the screen, the cursor, and what the keys do.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/time.h"

namespace baton::cli {

struct TerminalSize {
  std::size_t columns = 100;
  std::size_t lines = 0;  // 0: as many as there are
};

struct FrameLine {
  std::string text;
  bool is_heading = false;  // is shown in bold
};

// Signals about the terminal and the end, which from now on wait to be asked for. To be made before there are
// other threads, for each of them would die of them.
class TerminalSignals {
 public:
  TerminalSignals();
  ~TerminalSignals();
  TerminalSignals(const TerminalSignals&) = delete;
  TerminalSignals& operator=(const TerminalSignals&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

class Terminal {
 public:
  enum class Event : unsigned char {
    nothing,
    resized,
    key,
    end
  };  // end: by a signal, or the terminal is gone

  explicit Terminal(const TerminalSignals& signals);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static bool is_there();  // we can read from it and write to it
  TerminalSize size() const;
  void draw(const std::vector<FrameLine>& lines);
  Event wait(Duration at_most);
  char key() const { return key_; }  // that the last event was about

 private:
  const TerminalSignals& signals_;
  char key_ = 0;
};

}  // namespace baton::cli
