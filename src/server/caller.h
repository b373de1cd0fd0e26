// Whoever is at the other end of a connection that speaks the Redis protocol, as far as it has said.
#pragma once

#include <cstdint>
#include <string>

#include "server/access.h"
#include "server/crowd.h"
#include "server/transaction.h"

namespace baton::server {

struct Caller {
  std::uint64_t id = 0;    // of its connection
  PrincipalRef principal;  // none: it has not said who it is
  PrincipalRef certified;  // who it is by its certificate
  Crowd::Place place;      // among the connections of that principal
  std::string ns = "default";
  int version = 2;  // of the protocol
  bool leaves = false;
  Transaction transaction;
  bool executes = false;  // what the transaction holds is to be begun
  std::string name;       // what it calls itself, for people
  std::string library;
  std::string library_version;
};

}  // namespace baton::server
