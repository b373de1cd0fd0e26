#include "base/random_name.h"

#include <sys/random.h>

#include <cstdint>

#include "base/check.h"

namespace baton {

std::string random_name() {
  std::uint64_t bits = 0;
  BATON_CHECK(::getrandom(&bits, sizeof bits, 0) == ssize_t{sizeof bits});
  std::string name;
  for (int digit = 0; digit < 16; ++digit, bits >>= 4) name += "0123456789abcdef"[bits & 15];
  return name;
}

}  // namespace baton
