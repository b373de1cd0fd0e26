// What a line to the coordinator has to know, made of what a client was told.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/address.h"
#include "client/client.h"
#include "client/lookup.h"
#include "wire/resp_value.h"
#include "wire/tls.h"

namespace baton::client {

struct LineOptions {
  std::vector<Address> addresses;
  Lookup::Resolve resolve = client::resolve;
  std::shared_ptr<wire::TlsContext> tls;  // null: none; all lines of a client share it
  std::string greeting;                   // commands to begin with
  std::size_t greetings = 0;              // replies to them
  Duration connect_timeout;
  Duration silence_max;
  Duration backoff_min;
  Duration backoff_max;
  wire::RespValueLimits reply;
  std::function<void(const ConnectionNews&)> news;  // may be empty
};

Result<LineOptions> line_options(const ClientOptions& options);

}  // namespace baton::client
