#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace baton {
namespace {

thread_local int throw_depth = 0;

}  // namespace

ThrowOnCheck::ThrowOnCheck() { ++throw_depth; }
ThrowOnCheck::~ThrowOnCheck() { --throw_depth; }

void check_failed(const char* condition, const char* file, int line) {
  if (throw_depth > 0) throw CheckFailure{condition, file, line};
  std::fprintf(stderr, "baton: internal check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace baton
