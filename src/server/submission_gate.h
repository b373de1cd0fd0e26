// Which submissions and new messages are let in just now. Who is not is told when to come again. Completions,
// extensions and questions always pass: what is under way makes room by being finished. So does a submission
// under a key that is known.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "core/request.h"
#include "core/state.h"
#include "server/limits.h"

namespace baton::server {

class SubmissionGate {
 public:
  static constexpr std::size_t kBucketsMax = 10'000;

  explicit SubmissionGate(const ServerLimits& limits) : limits_(limits) {}

  bool is_open() const {
    return limits_.memory_bytes_max == 0 && limits_.namespace_bytes_per_second_max == 0;
  }
  // The refusal, if there is one. What passes is charged to its namespace.
  std::optional<Error> refuse(const core::Request& request, const core::State& state, Instant now);
  // Looks at the memory in use, every second at most.
  void look(Instant now);

 private:
  // What a namespace may still write. It fills at the rate, up to the burst, and may fall below zero once, so
  // that a task larger than the burst gets through.
  struct Bucket {
    double bytes = 0;
    Instant filled;
  };

  Bucket& bucket_of(const std::string& ns, Instant now);
  std::optional<Error> refuse_bytes(const std::string& ns, std::size_t bytes, bool may_refuse, Instant now);
  std::optional<Error> refuse_messages(const core::ProcessWork& work, const core::State& state, Instant now);
  bool has_memory(const auto& slab) const;
  Error refuse_memory() const;
  void fill(Bucket& bucket, Instant now) const;

  const ServerLimits limits_;
  std::unordered_map<std::string, Bucket> buckets_;
  std::uint64_t memory_bytes_ = 0;
  Instant looked_;
};

}  // namespace baton::server
