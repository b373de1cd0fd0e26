// What connections that do nothing, or nothing good, cost those that work: bench_idle [ROUNDS [SECONDS
// [IDLE]]]
//
// Each round measures the same work alone, beside idle connections, and beside hostile ones; the ratios are
// of medians over rounds, because the disk's flush time changes from minute to minute.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "load.h"
#include "tests/temporary_directory.h"

namespace {

using namespace baton;
using namespace baton::bench;

constexpr std::size_t kHostile = 200;  // of each kind

void say(int socket, std::string_view words) {
  (void)!::send(socket, words.data(), words.size(), MSG_NOSIGNAL);
}

class Crowd {
 public:
  Crowd(const Peer& peer, std::size_t count) {
    for (std::size_t at = 0; at < count; ++at) sockets_.push_back(connect_to(peer.port()));
  }
  ~Crowd() {
    for (const int socket : sockets_) ::close(socket);
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  const std::vector<int>& sockets() const { return sockets_; }

 private:
  std::vector<int> sockets_;
};

// They have talked once, as connections in a pool have, and something large was said to each.
void become_idle(const Crowd& crowd) {
  constexpr std::size_t kLarge = 100'000;
  const std::string ping = fmt::format("*2\r\n$4\r\nPING\r\n${}\r\n{}\r\n", kLarge, std::string(kLarge, 'x'));
  std::string reply(ping.size() - std::string_view("*2\r\n$4\r\nPING\r\n").size(), ' ');
  for (const int socket : crowd.sockets()) {
    say(socket, ping);
    (void)!::recv(socket, reply.data(), reply.size(), MSG_WAITALL);
  }
}

// As much as the server and the kernel take, and no reply is ever read.
void ask_and_never_read(const Crowd& crowd) {
  std::string questions;
  for (int at = 0; at < 10'000; ++at) questions += "QUEUES\r\n";
  for (const int socket : crowd.sockets())
    (void)!::send(socket, questions.data(), questions.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// A command that never ends, a byte at a time, for as long as it lives.
class SlowSpeakers {
 public:
  explicit SlowSpeakers(const Peer& peer)
      : crowd_(peer, kHostile), thread_([this](const std::stop_token& stop) {
          for (const int socket : crowd_.sockets())
            say(socket, "*3\r\n$6\r\nSUBMIT\r\n$1\r\nq\r\n$100000\r\n");
          for (std::size_t at = 0; !stop.stop_requested(); at = (at + 1) % crowd_.sockets().size()) {
            say(crowd_.sockets()[at], "x");
            std::this_thread::sleep_for(std::chrono::microseconds(500));
          }
        }) {}

 private:
  const Crowd crowd_;
  std::jthread thread_;  // ends before the sockets do
};

// How long it takes until requests are answered quickly again.
double wait_for_calm(const Peer& peer) {
  const auto begin = std::chrono::steady_clock::now();
  const Load one{.connections = 1, .depth = 1, .life = {Step::submit}, .seconds = 0.1};
  for (double p50_us = 0; p50_us == 0 || p50_us > 20'000;) p50_us = run_load(peer, one).p50_us;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double resident_mb(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::atof(line.c_str() + 6) / 1024;
  }
  return 0;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Scene {
  std::string name;
  const Peer& peer;
  std::vector<double> p50_us = {};
  std::vector<double> memory_mb = {};
};

void measure(Scene& scene, double seconds) {
  const Measured measured = run_load(scene.peer, {.connections = 16,
                                                  .depth = 1,
                                                  .life = {Step::submit, Step::lease, Step::complete},
                                                  .seconds = seconds});
  scene.p50_us.push_back(measured.p50_us);
  scene.memory_mb.push_back(resident_mb(scene.peer.process()));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.3;
  const std::size_t idle = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 10'000;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < idle + 1000) {
    fmt::print(stderr, "bench: this process may open only {} files; raise that (ulimit -n)\n",
               files.rlim_cur);
    return 1;
  }

  // A server for each, alike in all but its company.
  const TemporaryDirectory directory;
  const std::string program = std::filesystem::path(argv[0]).parent_path() / "baton";
  const auto start = [&](const char* name) { return start_baton(program, directory.path() + "/" + name); };
  const auto alone = start("alone"), popular = start("popular"), harassed = start("harassed");
  const Crowd idle_ones(*popular, idle);
  become_idle(idle_ones);
  const Crowd never_read(*harassed, kHostile);
  ask_and_never_read(never_read);
  const SlowSpeakers slow(*harassed);
  const double flood_s = wait_for_calm(*harassed);

  std::vector<Scene> scenes{
      {"16 x 1 alone", *alone},
      {fmt::format("beside {} idle ones", idle), *popular},
      {fmt::format("beside {} that never read, {} that send a byte at a time", kHostile, kHostile),
       *harassed}};
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t at = 0; at < scenes.size(); ++at)
      measure(scenes[(at + static_cast<std::size_t>(round)) % scenes.size()], seconds);
  }
  for (const Scene& scene : scenes)
    fmt::print("{:<60} p50 {:>5.0f} us, {:.2f} x  {:>4.0f} MB\n", scene.name, median(scene.p50_us),
               median(scene.p50_us) / median(scenes[0].p50_us), median(scene.memory_mb));
  fmt::print("until the questions that nobody hears the answers of were dealt with: {:.1f} s\n", flood_s);
}
