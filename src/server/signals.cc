#include "server/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/check.h"

namespace baton::server {
namespace {

constexpr int kExitInterrupted = 130;

// All that a handler can reach.
int write_end = -1;
std::atomic<bool> is_to_end = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void pass_on(int number) {
  if ((number == SIGINT || number == SIGTERM) && is_to_end.exchange(true)) ::_exit(kExitInterrupted);
  const int before = errno;
  const auto byte = static_cast<unsigned char>(number);
  // A pipe that is full has enough to tell already.
  [[maybe_unused]] const ssize_t ignored = ::write(write_end, &byte, 1);
  errno = before;
}

}  // namespace

Signals::Signals(std::span<const int> numbers) {
  BATON_CHECK(write_end == -1);
  is_to_end = false;
  int ends[2] = {-1, -1};
  BATON_CHECK(::pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
  read_ = Descriptor(ends[0]);
  write_ = Descriptor(ends[1]);
  write_end = ends[1];
  for (const int number : numbers) {
    struct sigaction handle{};
    struct sigaction before{};
    handle.sa_handler = pass_on;
    handle.sa_flags = SA_RESTART;
    ::sigaction(number, &handle, &before);
    before_.emplace_back(number, before);
  }
}

Signals::~Signals() {
  for (const auto& [number, before] : before_) ::sigaction(number, &before, nullptr);
  write_end = -1;
}

int Signals::next() {
  unsigned char byte = 0;
  return ::read(read_.number(), &byte, 1) == 1 ? byte : 0;
}

}  // namespace baton::server
