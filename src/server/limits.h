// How much one connection, one principal and the server as a whole may take. docs/protocol.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "wire/resp.h"

namespace baton::server {

struct HttpLimits {
  std::uint32_t header_bytes_max = 16 << 10;
  std::uint64_t body_bytes_max = std::uint64_t{4} << 20;
};

struct BlobLimits {
  std::uint64_t bytes_max = std::uint64_t{16} << 30;  // of one
  std::size_t transfers_max = 64;                     // at a time, each with up to a megabyte in memory
};

inline constexpr std::uint64_t kWaitMsMax = 60 * 60 * 1000;  // that a verb may wait for something

struct ServerLimits {
  std::size_t connections_max = 16'000;
  std::size_t connections_per_address_max = 12'000;    // so that one machine cannot take them all
  std::size_t connections_per_principal_max = 12'000;  // of the Redis protocol, where it says who it is
  Duration stuck_max = seconds(30);  // a command half sent, or a reply half read, for this long

  // Of one connection.
  wire::RespLimits command;
  HttpLimits http;
  BlobLimits blobs;
  std::size_t under_way_max = 4096;                     // commands begun and not yet answered
  std::size_t output_bytes_max = std::size_t{1} << 20;  // begun no more while this much is unsent

  // Of all connections together. Beyond it nobody is served further ahead than he reads.
  std::size_t unsent_bytes_max = std::size_t{256} << 20;
  // Commands, bodies and transactions that have come in part. Beyond it only those are read that are small,
  // until there is some room again.
  std::size_t half_bytes_max = std::size_t{1} << 30;

  // Beyond these submissions are refused for a while, and everything else goes on. 0: no limit. What a
  // namespace may hold is in core::Rules.
  std::uint64_t memory_bytes_max = 0;  // resident
  std::uint64_t namespace_bytes_per_second_max = 0;
  std::uint64_t namespace_bytes_burst = std::uint64_t{8} << 20;
};

}  // namespace baton::server
