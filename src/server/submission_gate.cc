#include "server/submission_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "server/figures.h"

namespace baton::server {
namespace {

constexpr Duration kMemoryRetry = seconds(1);
constexpr std::size_t kBesidesBytes = 128;  // of an entry, about

// It is answered from what is there, so it takes no room; who repeats it may have no other way to learn that
// the first attempt was taken.
bool is_repetition(const core::State& state, const auto& request) {
  return !request.key.empty() && state.keys.find(core::ScopedName(request.ns, request.key)) != 0;
}

}  // namespace

std::optional<Error> SubmissionGate::refuse(const core::Request& request, const core::State& state,
                                            Instant now) {
  if (const auto* submit = std::get_if<core::SubmitTask>(&request)) {
    if (is_repetition(state, *submit)) return {};
    if (!has_memory(state.tasks)) return refuse_memory();
    return refuse_bytes(submit->ns, submit->payload.bytes().size(), true, now);
  }
  if (const auto* requeue = std::get_if<core::RequeueTask>(&request))
    return is_repetition(state, *requeue) || has_memory(state.tasks) ? std::optional<Error>()
                                                                     : refuse_memory();
  if (const auto* complete = std::get_if<core::CompleteTask>(&request))
    return refuse_bytes(complete->ns, complete->result.bytes().size(), false, now);
  if (const auto* work = std::get_if<core::ProcessWork>(&request)) return refuse_messages(*work, state, now);
  return {};
}

// A call is let in as a whole or not at all, so new messages wait together with what is reported beside them.
std::optional<Error> SubmissionGate::refuse_messages(const core::ProcessWork& work, const core::State& state,
                                                     Instant now) {
  std::size_t stored = 0, bytes = 0;
  for (const stream::Lane lane : core::kLanes) {
    for (const core::StoreMessage& message : work.messages[lane])
      bytes += message.body.bytes().size() + (stored++ > 0 ? kBesidesBytes : 0);
    for (const core::FailMessage& failed : work.failures[lane]) bytes += failed.error.bytes().size();
  }
  if (stored > 0 && !has_memory(state.streams.messages)) return refuse_memory();
  if (stored == 0 && bytes == 0) return {};
  return refuse_bytes(work.ns, bytes, stored > 0, now);
}

// Memory that tasks once took is theirs for good, and the next ones use it again; and likewise messages. So
// the limit stops growth: what finds room in what is there is let in.
bool SubmissionGate::has_memory(const auto& slab) const {
  if (limits_.memory_bytes_max == 0 || memory_bytes_ <= limits_.memory_bytes_max) return true;
  const std::uint32_t taken = slab.end() - 1;
  return taken - slab.used() > taken / 20;
}

Error SubmissionGate::refuse_memory() const {
  return {Errc::exhausted,
          fmt::format("the server uses {} bytes of memory, and memory_bytes_max is {}", memory_bytes_,
                      limits_.memory_bytes_max),
          kMemoryRetry};
}

void SubmissionGate::look(Instant now) {
  if (limits_.memory_bytes_max == 0 || now - looked_ < seconds(1)) return;
  looked_ = now;
  memory_bytes_ = resident_bytes();
}

void SubmissionGate::fill(Bucket& bucket, Instant now) const {
  const auto rate = static_cast<double>(limits_.namespace_bytes_per_second_max);
  const double more = rate * static_cast<double>((now - bucket.filled).ms) / 1000;
  bucket.bytes = std::min(bucket.bytes + more, static_cast<double>(limits_.namespace_bytes_burst));
  bucket.filled = now;
}

SubmissionGate::Bucket& SubmissionGate::bucket_of(const std::string& ns, Instant now) {
  const auto known = buckets_.find(ns);
  if (known != buckets_.end()) {
    fill(known->second, now);
    return known->second;
  }
  if (buckets_.size() == kBucketsMax) {
    // One that is full again is as good as new.
    for (auto& [name, bucket] : buckets_) fill(bucket, now);
    std::erase_if(buckets_, [&](const auto& one) {
      return one.second.bytes >= static_cast<double>(limits_.namespace_bytes_burst);
    });
    if (buckets_.size() == kBucketsMax) buckets_.erase(buckets_.begin());
  }
  return buckets_[ns] = {.bytes = static_cast<double>(limits_.namespace_bytes_burst), .filled = now};
}

std::optional<Error> SubmissionGate::refuse_bytes(const std::string& ns, std::size_t bytes, bool may_refuse,
                                                  Instant now) {
  if (limits_.namespace_bytes_per_second_max == 0) return {};
  Bucket& bucket = bucket_of(ns, now);
  if (may_refuse && bucket.bytes <= 0) {
    const double wait = -bucket.bytes * 1000 / static_cast<double>(limits_.namespace_bytes_per_second_max);
    return Error{Errc::exhausted,
                 fmt::format("the namespace writes faster than it may, which is {} bytes per second",
                             limits_.namespace_bytes_per_second_max),
                 milliseconds(static_cast<std::int64_t>(std::ceil(wait)) + 1)};
  }
  bucket.bytes -= static_cast<double>(bytes + kBesidesBytes);
  return {};
}

}  // namespace baton::server
