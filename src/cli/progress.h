// How far a long command has got: a line on the terminal that is written over, and nothing if there is none.
//
//   [##########..............]  42 %   120000 tasks   45210 tasks/s
#pragma once

#include <cstdint>

namespace baton::cli {

class Progress {
 public:
  explicit Progress(const char* what);  // is counted
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `part` of `whole`; a whole of 0 is not known. Costs nothing if it was shown a moment ago.
  void show(std::uint64_t count, std::uint64_t part, std::uint64_t whole);
  void clear();

 private:
  const char* const what_;
  const bool on_terminal_;
  const std::int64_t began_at_;
  std::int64_t shown_at_;
  bool visible_ = false;
};

}  // namespace baton::cli
