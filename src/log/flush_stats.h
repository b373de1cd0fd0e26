// How long flushes took and how much they carried, for operators. Written by the flusher, read by anyone.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace baton::log {

struct FlushStats {
  // Upper bounds of the buckets, in microseconds; one more bucket has no bound.
  static constexpr std::array<std::uint32_t, 14> kBoundsUs{50,      100,     250,       500,       1'000,
                                                           2'500,   5'000,   10'000,    25'000,    50'000,
                                                           100'000, 250'000, 1'000'000, 10'000'000};

  // Of batches, in records.
  static constexpr std::array<std::uint32_t, 12> kBoundsRecords{1,   2,   5,   10,    20,    50,
                                                                100, 200, 500, 1'000, 2'000, 4'096};

  void count(std::uint64_t took_us, std::uint64_t records, std::uint64_t bytes) {
    std::size_t bucket = 0;
    while (bucket < kBoundsUs.size() && took_us > kBoundsUs[bucket]) ++bucket;
    std::size_t size = 0;
    while (size < kBoundsRecords.size() && records > kBoundsRecords[size]) ++size;
    add(sizes[size], 1), add(buckets[bucket], 1), add(flushes, 1), add(total_us, took_us);
    add(total_records, records), add(total_bytes, bytes);
  }

  // How long this share of the flushes took at most, to within a bucket.
  std::uint64_t quantile_us(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(flushes.load()));
    std::uint64_t seen = 0;
    for (std::size_t at = 0; at < kBoundsUs.size(); ++at) {
      seen += buckets[at];
      if (seen > wanted) return kBoundsUs[at];
    }
    return flushes == 0 ? 0 : kBoundsUs.back();
  }

  std::array<std::atomic<std::uint64_t>, kBoundsUs.size() + 1> buckets{};
  std::array<std::atomic<std::uint64_t>, kBoundsRecords.size() + 1> sizes{};
  std::atomic<std::uint64_t> flushes = 0;
  std::atomic<std::uint64_t> total_us = 0;
  std::atomic<std::uint64_t> total_records = 0;
  std::atomic<std::uint64_t> total_bytes = 0;

 private:
  static void add(std::atomic<std::uint64_t>& to, std::uint64_t count) {
    to.fetch_add(count, std::memory_order_relaxed);
  }
};

}  // namespace baton::log
