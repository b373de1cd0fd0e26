// Waits until a descriptor is ready or another thread has something to say, and tells whoever watches.
//
// Readiness is told when it changes, not while it lasts: who is told that there is something to read
// remembers it until there is nothing more.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/time.h"

namespace baton::server {

struct Ready {
  bool to_read = false;  // something came, or nothing more will
  bool to_write = false;
  bool hung_up = false;  // the other side has ended what it says
};

class Poller {
 public:
  Poller();

  enum class For : std::uint8_t { reading, reading_and_writing };

  // Until forget(), which must not come from inside `ready` itself.
  void watch(int descriptor, For what, std::function<void(Ready)> ready);
  void forget(int descriptor);

  // Waits for at most this long, then tells all there is to tell. False if there was nothing.
  bool wait(Duration most);

  // From any thread: ends the waiting; what is posted runs on the thread that waits.
  void wake();
  void post(std::function<void()> task);

 private:
  void run_posted();

  Descriptor poll_;
  Descriptor wake_;
  std::unordered_map<int, std::function<void(Ready)>> watchers_;
  std::mutex mutex_;
  bool woken_ = false;
  std::vector<std::function<void()>> posted_;
};

}  // namespace baton::server
