// The partition of a stream: a number that spreads streams over instances, and nothing else.
//
// It is the first eight bytes of the SHA-256 of the stream's sixteen, as one unsigned number with the most
// significant byte first, modulo the number of partitions. Every language and PostgreSQL itself
// (wh_partition_of) compute the same; docs/streams.md has values to compare with.
#pragma once

#include <cstdint>

#include "stream/uuid.h"

namespace baton::stream {

std::uint64_t partition_hash(StreamId stream);

// `count` is at least 1.
std::int32_t partition_of(StreamId stream, std::int32_t count);

}  // namespace baton::stream
