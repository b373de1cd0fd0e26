#include "checkpoint/chance.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cstdint>

#include "base/check.h"

namespace baton::checkpoint {

std::string random_digits() {
  std::uint64_t number = 0;
  BATON_CHECK(::getrandom(&number, sizeof number, 0) == ssize_t{sizeof number});
  return fmt::format("{:016x}", number);
}

}  // namespace baton::checkpoint
