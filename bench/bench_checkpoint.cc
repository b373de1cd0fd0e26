// Checkpoints against what the disk and the memory can do, in the same run: a durable save over the raw rate
// of writing, a verified load over that of reading, what an async save costs the training loop over a plain
// copy, and how much more than they need ranks read when their number changes.
//
//   bench_checkpoint [DIRECTORY [MEBIBYTES [ROUNDS]]]
//
// Raw is O_DIRECT with io_uring from and to one buffer, preallocated and synced, without looking at the
// bytes. Rounds are interleaved, for neighbours make disks fast and slow by the minute; each line is a
// median.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "checkpoint/catalog.h"
#include "checkpoint/checksum.h"
#include "checkpoint/distributed_checkpoint.h"
#include "checkpoint/in_process_collective.h"
#include "checkpoint/io_engine.h"
#include "checkpoint/local_storage.h"

namespace {

using namespace baton;
using namespace baton::checkpoint;
namespace fs = std::filesystem;

constexpr std::size_t kTensors = 300;

double seconds_of(const std::function<void()>& what) {
  const auto begin = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Of the same content every time it is saved; touched, so that the memory is there.
struct Model {
  explicit Model(std::uint64_t bytes) : memory(allocate_aligned(bytes)) {
    const std::uint64_t each = bytes / kTensors / 4 * 4;
    std::uint64_t random = 1;
    for (std::size_t i = 0; i < kTensors; ++i) {
      std::byte* at = memory.get() + i * each;
      for (std::uint64_t word = 0; word < each / 8; ++word) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        std::memcpy(at + word * 8, &random, 8);
      }
      const Shape shape{each / 4};
      infos.push_back({fmt::format("layer.{}.weight", i), Dtype::f32, shape, whole(shape)});
      views.emplace_back(at, each);
    }
  }
  ShardData shard() const {
    ShardData data;
    data.tensors.reserve(infos.size());
    for (std::size_t i = 0; i < infos.size(); ++i) data.tensors.push_back({infos[i], views[i]});
    return data;
  }
  std::vector<TensorTarget> targets() const {
    std::vector<TensorTarget> all;
    all.reserve(infos.size());
    for (std::size_t i = 0; i < infos.size(); ++i) all.push_back({infos[i], views[i]});
    return all;
  }
  AlignedMemory memory;
  std::vector<TensorInfo> infos;
  std::vector<std::span<std::byte>> views;
};

constexpr std::uint64_t kBuffersBytes = kTransfersMax * kBlockBytes;

// Through memory of `room` bytes, again and again.
void transfer(Transfer::Direction direction, int descriptor, std::uint64_t bytes, std::byte* memory,
              std::uint64_t room) {
  const auto engine = engine_for(IoMode::direct_ring);
  std::size_t under_way = 0;
  const auto await = [&] {
    BATON_CHECK(engine->wait().result == static_cast<std::int64_t>(kBlockBytes));
    --under_way;
  };
  for (std::uint64_t offset = 0; offset < bytes; offset += kBlockBytes) {
    if (under_way == kTransfersMax) await();
    engine->submit({direction, descriptor, offset, memory + offset % room, kBlockBytes, 0});
    ++under_way;
  }
  while (under_way > 0) await();
}

void write_raw(const std::string& path, std::uint64_t bytes, std::byte* memory) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
  BATON_CHECK(file >= 0);
  BATON_CHECK(::fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0);
  transfer(Transfer::Direction::write, file, bytes, memory, kBuffersBytes);
  BATON_CHECK(::fsync(file) == 0);
  ::close(file);
}

void read_raw(const std::string& path, std::uint64_t bytes, std::byte* memory, std::uint64_t room) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  BATON_CHECK(file >= 0);
  transfer(Transfer::Direction::read, file, bytes, memory, room);
  ::close(file);
}

void must(const auto& result) {
  if (result) return;
  fmt::print(stderr, "bench_checkpoint: {}\n", result.error().message);
  std::exit(1);
}

// torch.save of as much in as many tensors and an fsync, where Debian's python3-torch is installed. Seconds.
std::optional<double> torch_save(const std::string& directory, std::uint64_t bytes) {
  const std::string script = fmt::format(
      "import os,time,torch\n"
      "s={{f'layer.{{i}}.weight':torch.rand({}) for i in range({})}}\n"
      "f=open('{}/torch.pt','wb'); t=time.perf_counter()\n"
      "torch.save(s,f); f.flush(); os.fsync(f.fileno()); print(time.perf_counter()-t)\n",
      bytes / kTensors / 4, kTensors, directory);
  std::FILE* output = ::popen(("/usr/bin/python3 -c \"" + script + "\" 2>/dev/null").c_str(), "r");
  double seconds = 0;
  const bool is_there = output != nullptr && std::fscanf(output, "%lf", &seconds) == 1;
  if (output != nullptr) ::pclose(output);
  fs::remove(directory + "/torch.pt");
  if (!is_there) return {};
  return seconds;
}

struct Samples {
  std::vector<double> raw_write, save, raw_read, spread_read, load, copy, stall;
  std::vector<double> torch;  // none if it is not installed
  // Of the limit in the same round.
  std::vector<double> save_share, load_share, load_spread_share, stall_share, torch_share;
};

void line(const char* what, const std::vector<double>& seconds, std::uint64_t bytes,
          const std::string& remark) {
  const auto rate = [&](double s) { return static_cast<double>(bytes) / s / 1e9; };
  fmt::print("{:<38} {:>7.2f} GB/s   ({:.2f} to {:.2f})   {}\n", what, rate(median(seconds)),
             rate(*std::ranges::max_element(seconds)), rate(*std::ranges::min_element(seconds)), remark);
}

void measure_round(const std::string& directory, Storage& storage, Collective& collective, const Model& model,
                   std::uint64_t bytes, std::uint64_t step, Samples& samples) {
  const AlignedMemory buffer = allocate_aligned(kBuffersBytes);
  std::memset(buffer.get(), 1, kBuffersBytes);
  const AlignedMemory staging = allocate_aligned(bytes);
  std::memset(staging.get(), 1, bytes);
  const std::string raw = directory + "/raw";
  DistributedCheckpoint checkpoint(collective, storage);
  const double write = seconds_of([&] { write_raw(raw, bytes, buffer.get()); });
  const double saved = seconds_of([&] { must(checkpoint.save(step, model.shard(), {})); });
  const double read = seconds_of([&] { read_raw(raw, bytes, buffer.get(), kBuffersBytes); });
  const double spread = seconds_of([&] { read_raw(raw, bytes, staging.get(), bytes); });
  const double loaded = seconds_of([&] { must(checkpoint.load("", model.targets(), {})); });
  fs::remove(raw);

  const double copied = seconds_of([&] { std::memcpy(staging.get(), model.memory.get(), bytes); });
  must(checkpoint.save_async(step + 1, model.shard(), {})->wait(hours(1)));  // warms the staging memory
  const double stalled = seconds_of([&] { must(checkpoint.save_async(step + 2, model.shard(), {})); });
  must(checkpoint.close());

  if (const auto torch = torch_save(directory, bytes)) {
    samples.torch.push_back(*torch);
    samples.torch_share.push_back(*torch / saved);
  }
  samples.raw_write.push_back(write), samples.save.push_back(saved),
      samples.save_share.push_back(write / saved);
  samples.raw_read.push_back(read), samples.load.push_back(loaded),
      samples.load_share.push_back(read / loaded);
  samples.spread_read.push_back(spread), samples.load_spread_share.push_back(spread / loaded);
  samples.copy.push_back(copied), samples.stall.push_back(stalled),
      samples.stall_share.push_back(stalled / copied);
}

void measure_resharding(Storage& storage) {
  const Shape shape{16384, 1024};  // 64 MiB
  const AlignedMemory memory = allocate_aligned(std::size_t{16384} * 1024 * 4);
  std::memset(memory.get(), 3, std::size_t{16384} * 1024 * 4);
  const auto slice = [&](Rank rank, Rank ranks) {
    Rectangle part = whole(shape);
    part.offset[0] = shape[0] * rank / ranks;
    part.shape[0] = shape[0] * (rank + 1) / ranks - part.offset[0];
    return TensorInfo{"w", Dtype::f32, shape, part};
  };
  const auto as_ranks = [](Rank ranks, const std::function<void(Collective&)>& what) {
    InProcessGroup group(ranks);
    std::vector<std::unique_ptr<Collective>> places;
    places.reserve(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) places.push_back(*group.join(rank));
    std::vector<std::jthread> threads;
    threads.reserve(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { what(*places[rank]); });
  };
  std::uint64_t step = 1'000'000;
  for (const auto& [from, to] : {std::pair<Rank, Rank>{1, 2}, {2, 3}, {4, 3}, {8, 1}, {3, 8}}) {
    ++step;
    as_ranks(from, [&, writers = from](Collective& collective) {
      const TensorInfo info = slice(collective.rank(), writers);
      ShardData mine;
      mine.tensors.push_back({info, {memory.get() + info.slice.offset[0] * 4096, slice_bytes(info)}});
      must(DistributedCheckpoint(collective, storage).save(step, std::move(mine), {}));
    });
    std::vector<std::uint64_t> needed(to), read(to);
    as_ranks(to, [&, readers = to](Collective& collective) {
      const TensorInfo info = slice(collective.rank(), readers);
      const std::vector<TensorTarget> wanted{
          {info, {memory.get() + info.slice.offset[0] * 4096, slice_bytes(info)}}};
      const auto loaded = DistributedCheckpoint(collective, storage).load("", wanted, {});
      must(loaded);
      needed[collective.rank()] = loaded->report.bytes_needed;
      read[collective.rank()] = loaded->report.bytes_read;
    });
    std::uint64_t all_needed = 0;
    std::uint64_t all_read = 0;
    for (Rank rank = 0; rank < to; ++rank) all_needed += needed[rank], all_read += read[rank];
    fmt::print("{} ranks to {}: read {:.3f} x what they need\n", from, to,
               static_cast<double>(all_read) / static_cast<double>(all_needed));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "bench-checkpoint.tmp";
  const std::uint64_t bytes = (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 2048) << 20;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  fs::create_directories(directory);
  {
    const auto storage = LocalStorage::open_directory(directory + "/store");
    must(storage);
    fmt::print("{} MiB in {} tensors, {} rounds, {}\n", bytes >> 20, kTensors, rounds,
               (*storage)->describe());
    InProcessGroup group(1);
    const auto collective = *group.join(0);
    const Model model(bytes);
    Samples samples;
    for (int round = 0; round < rounds; ++round) {
      measure_round(directory, **storage, *collective, model, bytes,
                    static_cast<std::uint64_t>(round) * 10 + 1, samples);
      must(prune(**storage, {.keep_last = 1}, Really::yes));
    }
    line("raw write, durable", samples.raw_write, bytes, "");
    line("save, durable, with checksums", samples.save, bytes,
         fmt::format("{:.0f} % of raw", 100 * median(samples.save_share)));
    line("raw read, into one small buffer", samples.raw_read, bytes, "");
    line("raw read, each byte to its place", samples.spread_read, bytes, "");
    line("load, verified", samples.load, bytes,
         fmt::format("{:.0f} % of raw, {:.0f} % of raw to its place", 100 * median(samples.load_share),
                     100 * median(samples.load_spread_share)));
    line("memcpy into warm memory", samples.copy, bytes, "");
    line("async save, until training goes on", samples.stall, bytes,
         fmt::format("{:.2f} x memcpy", median(samples.stall_share)));
    if (samples.torch.empty()) {
      fmt::print("torch.save: python3-torch is not installed\n");
    } else {
      line("torch.save + fsync", samples.torch, bytes,
           fmt::format("our save is {:.1f} x as fast", median(samples.torch_share)));
    }
    measure_resharding(**storage);
  }
  fs::remove_all(directory);
}
