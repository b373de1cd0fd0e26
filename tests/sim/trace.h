// What happened, as one hash to compare runs by and, if somebody wants to read it, as lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace baton::sim {

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t mixed = a * 0x9e3779b97f4a7c15u ^ (b + 0x632be59bd9b4e019u);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

class Trace {
 public:
  void note(std::uint64_t what, std::uint64_t a = 0, std::uint64_t b = 0) {
    hash_ = mix(mix(mix(hash_, what), a), b);
  }
  std::uint64_t hash() const { return hash_; }

  bool wanted = false;  // lines are kept only then, for making them costs more than the run
  void line(std::string text) { lines_.push_back(std::move(text)); }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::uint64_t hash_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace baton::sim
