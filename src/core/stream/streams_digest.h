// One hash for each fact about streams, as core/digest.h has them for tasks.
#pragma once

#include <cstdint>

#include "core/stream/streams.h"

namespace baton::core::streams {

std::uint64_t fact_hash(const Streams& all, const Instance& instance);
std::uint64_t fact_hash(const Streams& all, const Stream& stream);
std::uint64_t fact_hash(const Streams& all, const Message& message);
std::uint64_t fact_hash(const Streams& all, const Letter& letter);
std::uint64_t fact_hash(const Streams& all, const Seen& seen);
std::uint64_t fact_hash(const Streams& all, const Tombstone& tombstone);
std::uint64_t fact_hash(const Streams& all, const History& history);
std::uint64_t fact_hash(const Streams& all, const StoredEvent& event);
std::uint64_t fact_hash(const Streams& all, const Checkpoint& checkpoint);
std::uint64_t fact_hash(const Streams& all, const ReceptorRecord& record);

std::uint64_t full_digest(const Streams& all);

// While a fact is rewritten, its old hash is out of the digest; afterwards the new one is in.
template <class Fact>
class Rewrite {
 public:
  Rewrite(const Streams& all, const Fact& fact, std::uint64_t& digest)
      : all_(all), fact_(fact), digest_(digest) {
    digest_ -= fact_hash(all, fact);
  }
  ~Rewrite() { digest_ += fact_hash(all_, fact_); }
  Rewrite(const Rewrite&) = delete;
  Rewrite& operator=(const Rewrite&) = delete;

 private:
  const Streams& all_;
  const Fact& fact_;
  std::uint64_t& digest_;
};

}  // namespace baton::core::streams
