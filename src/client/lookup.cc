#include "client/lookup.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/descriptor.h"

namespace baton::client {

struct Lookup::Shared {
  Descriptor is_done;
  std::mutex mutex;
  std::optional<Found> found;
};

Lookup::Lookup(const Address& address, const Resolve& resolve) : shared_(std::make_shared<Shared>()) {
  if (auto known = resolve_number(address); !known.empty()) {
    shared_->found = std::move(known);
    return;
  }
  shared_->is_done = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  BATON_CHECK(shared_->is_done.is_open());
  std::thread([shared = shared_, address, resolve] {
    Found found = resolve(address);
    const std::lock_guard lock(shared->mutex);
    shared->found = std::move(found);
    const std::uint64_t one = 1;
    BATON_CHECK(::write(shared->is_done.number(), &one, sizeof one) == sizeof one);
  }).detach();
}

int Lookup::descriptor() const { return shared_->is_done.number(); }

std::optional<Lookup::Found> Lookup::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->found, std::nullopt);
}

}  // namespace baton::client
