// One HTTP request, over a connection of its own: for bodies that are too long to be held in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "client/address.h"
#include "client/client.h"

namespace baton::client {

using BodySink = std::function<Status(std::string_view)>;
using BodySource = std::function<Status(const BodySink&)>;

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";
  std::uint64_t body_bytes = 0;
  BodySource body;       // gives so many bytes; empty: there is none
  BodySink wanted_body;  // takes the reply's, if the status is 200; empty: it is kept
};

struct HttpReply {
  unsigned status = 0;
  std::string body;  // unless it was wanted; 64 KiB at most
};

// Token, TLS and patience are those of the client. UNAVAILABLE: nobody is there; OUTCOME_UNKNOWN: it broke
// off; CLOSED: stopped.
Result<HttpReply> call_http(const Address& where, const ClientOptions& options, const HttpRequest& request,
                            const std::stop_token& stop);

}  // namespace baton::client
