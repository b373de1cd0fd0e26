// BATON_CHECK stops the program when baton itself is wrong. It stays on in release builds: the log
// is intact, so stopping is safe, while going on with a broken invariant is not.
#pragma once

namespace baton {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

// Thrown in place of stopping where somebody wants to look at the failure: a tool that checks a log, the
// simulation. The state it comes out of is broken and must be thrown away.
struct CheckFailure {
  const char* condition;
  const char* file;
  int line;
};

// From here on failed checks of this thread throw a CheckFailure, until the object goes.
class ThrowOnCheck {
 public:
  ThrowOnCheck();
  ~ThrowOnCheck();
  ThrowOnCheck(const ThrowOnCheck&) = delete;
  ThrowOnCheck& operator=(const ThrowOnCheck&) = delete;
};

}  // namespace baton

#define BATON_CHECK(condition)                               \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      ::baton::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
