// The search for the addresses of a host, on a thread of its own: a name server that does not answer must
// hold up nobody who has other things to do.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "client/address.h"

namespace baton::client {

class Lookup {
 public:
  using Found = Result<std::vector<Endpoint>>;
  using Resolve = std::function<Found(const Address&)>;

  // `resolve` may block. It is not asked for a host that is written as a number.
  Lookup(const Address& address, const Resolve& resolve);

  int descriptor() const;  // while there is nothing to take; readable when there is
  std::optional<Found> take();

 private:
  // Shared with the thread, which nobody can stop and nobody waits for: it may outlive us.
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace baton::client
