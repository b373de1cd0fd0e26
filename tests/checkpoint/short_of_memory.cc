#include "tests/checkpoint/short_of_memory.h"

#include <cstdlib>
#include <new>

namespace {

thread_local bool is_counting = false;
thread_local std::size_t left = 0;

}  // namespace

// All forms but those of larger alignment come here; each is named, for a sanitizer has some of its own.
void* operator new(std::size_t bytes) {
  if (is_counting && left-- == 0) {
    is_counting = false;
    throw std::bad_alloc();
  }
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t& none) noexcept {
  return operator new(bytes, none);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace baton::checkpoint {

ShortOfMemory::ShortOfMemory(std::size_t pieces) {
  left = pieces;
  is_counting = true;
}
ShortOfMemory::~ShortOfMemory() { is_counting = false; }

bool ShortOfMemory::has_happened() const { return !is_counting; }

}  // namespace baton::checkpoint
