// BATON_CHECK stops the program when baton itself is wrong. It stays on in release builds: the log
// is intact, so stopping is safe, while going on with a broken invariant is not.
#pragma once

namespace baton {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace baton

#define BATON_CHECK(condition)                               \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      ::baton::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
