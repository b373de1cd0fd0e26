#include "pipeline/random_name.h"

#include <random>

namespace baton::pipeline {

std::string random_name() {
  std::random_device dice;
  std::string name;
  for (int i = 0; i < 4; ++i) {
    for (unsigned bits = dice(), digit = 0; digit < 4; ++digit, bits >>= 4)
      name += "0123456789abcdef"[bits & 15];
  }
  return name;
}

}  // namespace baton::pipeline
