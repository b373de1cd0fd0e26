// How close group commit comes to what the disk can do. In turn, several rounds each in one run: the library
// with a fixed number of requests in flight, and bare write + fdatasync of batches of the same size. Usage:
// bench_commit [directory] [requests in flight, default 256] [rounds, default 50]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/coordinator.h"

namespace {

using namespace baton;
using Clock = std::chrono::steady_clock;
constexpr double kRoundSeconds = 0.1;  // short, since the disk changes its mind from second to second

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Round {
  double flushes_per_s = 0;
  double requests_per_s = 0;
  std::size_t batch_bytes = 0;
};

Round with_baton(Coordinator& coordinator, unsigned in_flight) {
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> answered = 0;
  std::atomic<unsigned> busy = in_flight;
  const SubmitTask submit{.ns = "bench", .queue = "q", .payload = Blob(Bytes(200, std::byte{7}))};
  std::function<void(engine::Answer)> again = [&](engine::Answer) {
    answered.fetch_add(1, std::memory_order_relaxed);
    if (stop.load(std::memory_order_relaxed)) {
      busy.fetch_sub(1);
      busy.notify_one();
      return;
    }
    coordinator.ask(submit, [&again](engine::Answer answer) { again(std::move(answer)); });
  };
  const std::uint64_t flushes_before = coordinator.flushes();
  const auto start = Clock::now();
  for (unsigned i = 0; i < in_flight; ++i) {
    coordinator.ask(submit, [&again](engine::Answer answer) { again(std::move(answer)); });
  }
  while (seconds_since(start) < kRoundSeconds) usleep(1'000);
  stop = true;
  for (unsigned left = busy.load(); left > 0; left = busy.load()) busy.wait(left);
  const double took = seconds_since(start);
  const auto flushes = static_cast<double>(coordinator.flushes() - flushes_before);
  const double per_batch = static_cast<double>(answered.load()) / flushes;
  const std::size_t bytes = 64 + static_cast<std::size_t>(per_batch * 280);
  return {flushes / took, static_cast<double>(answered.load()) / took, (bytes + 4095) / 4096 * 4096};
}

// A file filled beforehand, written from front to back, as the log does it.
class BareFile {
 public:
  explicit BareFile(const std::string& path) : file_(open(path.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600)) {
    const std::vector<char> zeros(1 << 20);
    for (std::size_t at = 0; at < kBytes; at += zeros.size()) {
      if (pwrite(file_, zeros.data(), zeros.size(), static_cast<off_t>(at)) < 0) std::abort();
    }
    fsync(file_);
  }
  ~BareFile() { close(file_); }

  double flushes_per_s(std::size_t batch_bytes) {
    const std::vector<char> batch(batch_bytes, 'x');
    std::uint64_t flushes = 0;
    const auto start = Clock::now();
    while (seconds_since(start) < kRoundSeconds) {
      if (at_ + batch_bytes > kBytes) at_ = 0;
      if (pwrite(file_, batch.data(), batch.size(), static_cast<off_t>(at_)) < 0 || fdatasync(file_) != 0)
        std::abort();
      at_ += batch_bytes;
      ++flushes;
    }
    return static_cast<double>(flushes) / seconds_since(start);
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{64} << 20;
  int file_;
  std::size_t at_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "bench-data";
  if (std::filesystem::exists(directory)) {
    std::fprintf(stderr, "%s exists; name a directory that does not, it is removed at the end\n",
                 directory.c_str());
    return 1;
  }
  const auto in_flight = static_cast<unsigned>(argc > 2 ? std::atoi(argv[2]) : 256);
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 50;
  auto coordinator = Coordinator::open(directory);
  if (!coordinator) {
    std::fprintf(stderr, "%s\n", coordinator.error().message.c_str());
    return 1;
  }
  BareFile bare_file(directory + "/bare.tmp");
  std::vector<double> ratios;
  double requests = 0, flushes = 0, bare_flushes = 0;
  std::printf("%u requests in flight, 200-byte payloads\n", in_flight);
  for (int i = 0; i < rounds; ++i) {
    const Round round = with_baton(**coordinator, in_flight);
    const double bare = bare_file.flushes_per_s(round.batch_bytes);
    ratios.push_back(round.flushes_per_s / bare);
    requests += round.requests_per_s / rounds;
    flushes += round.flushes_per_s / rounds;
    bare_flushes += bare / rounds;
  }
  std::ranges::sort(ratios);
  const std::size_t tenth = ratios.size() / 10;
  std::printf(
      "%.0f requests/s in %.0f flushes/s of %.1f requests; bare write + fdatasync of as many bytes %.0f/s\n",
      requests, flushes, requests / flushes, bare_flushes);
  std::printf(
      "flushes over bare ones: %.2f of the means; round by round median %.2f, tenth to ninetieth percentile "
      "%.2f "
      "to %.2f\n",
      flushes / bare_flushes, ratios[ratios.size() / 2], ratios[tenth], ratios[ratios.size() - 1 - tenth]);
  (void)(*coordinator)->close();
  coordinator->reset();
  std::filesystem::remove_all(directory);
}
