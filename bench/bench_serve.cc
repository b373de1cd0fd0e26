// baton beside other servers, in one interleaved run with one client:
//
//   bench_serve [ROUNDS [SECONDS [PROGRAM…]]]     each PROGRAM is another build of baton to compare with
//
// Each round measures every peer at one point before the next point, each one once all are at rest; the
// ratios are of medians over rounds, because the disk's flush time changes from minute to minute.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "load.h"
#include "rest.h"
#include "tests/temporary_directory.h"

namespace {

using namespace baton;
using namespace baton::bench;

struct Point {
  std::string name;
  Load load;
  std::vector<std::string> peers;
  std::size_t backlog = 0;  // tasks to be there before it starts
};

const std::vector<Step> kSubmit{Step::submit};
const std::vector<Step> kLife{Step::submit, Step::lease, Step::complete};
const std::vector<Step> kUnfused{Step::lease, Step::complete};
const std::vector<Step> kFused{Step::lease, Step::complete_and_lease};

std::vector<Point> points(double seconds) {
  const std::vector<std::string> with_redis{"baton", "redis", "floor"};
  const std::vector<std::string> everybody{"baton", "redis", "beanstalkd", "floor"};
  std::vector<Point> all;
  const auto add = [&](std::string name, Load load, const std::vector<std::string>& peers,
                       std::size_t backlog = 0) {
    load.seconds = seconds;
    all.push_back({std::move(name), std::move(load), peers, backlog});
  };
  add("submit, 16 x 256", {16, 256, kSubmit}, with_redis);
  add("full life, 16 x 256", {16, 256, kLife}, {"baton", "redis"});
  add("submit, 64 x 1", {64, 1, kSubmit}, with_redis);
  add("full life, 64 x 1", {64, 1, kLife}, {"baton", "redis"});
  add("submit, 1 x 1", {1, 1, kSubmit}, everybody);
  add("lease and complete, 1 x 1", {1, 1, kUnfused}, {"baton"}, 20'000);
  add("complete and lease in one, 1 x 1", {1, 1, kFused}, {"baton"}, 20'000);
  return all;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Series {
  std::vector<double> rates;
  std::vector<double> latencies;
  std::uint64_t failures = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.7;
  const TemporaryDirectory directory;
  const std::string beside = std::filesystem::path(argv[0]).parent_path();
  std::map<std::string, std::unique_ptr<Peer>> peers;
  for (int at = 3; at < argc; ++at) {
    const std::string name =
        std::filesystem::path(argv[at]).filename().string() + " " + std::to_string(at - 2);
    peers[name] = start_baton(argv[at], directory.path() + "/build" + std::to_string(at));
  }
  for (auto started :
       {start_baton, +[](const std::string&, const std::string& at) { return start_redis(at); },
        +[](const std::string&, const std::string& at) { return start_beanstalkd(at); },
        +[](const std::string&, const std::string& at) { return start_floor(at); }}) {
    auto peer = started(beside + "/baton", directory.path() + "/" + std::to_string(peers.size()));
    if (!peer) continue;
    const std::string name = peer->name();
    peers[name] = std::move(peer);
  }
  for (const char* wanted : {"redis", "beanstalkd"}) {
    if (!peers.contains(wanted)) fmt::print("{} is not installed, and is left out\n", wanted);
  }

  auto all_points = points(seconds);
  for (Point& point : all_points) {
    for (const auto& [name, peer] : peers) {
      if (peer->name() == "baton" && name != "baton") point.peers.push_back(name);
    }
  }
  std::vector<std::map<std::string, Series>> series(all_points.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t at = 0; at < all_points.size(); ++at) {
      const Point& point = all_points[at];
      for (const std::string& name : point.peers) {
        if (!peers.contains(name)) continue;
        if (point.backlog > 0) submit_backlog(*peers[name], point.backlog);
        wait_for_rest();
        const Measured measured = run_load(*peers[name], point.load);
        series[at][name].rates.push_back(measured.tasks_per_s);
        series[at][name].latencies.push_back(measured.p50_us);
        series[at][name].failures += measured.failures;
      }
    }
  }
  for (std::size_t at = 0; at < all_points.size(); ++at) {
    fmt::print("{}\n", all_points[at].name);
    const double own = median(series[at]["baton"].rates);
    for (const auto& [name, measured] : series[at]) {
      const auto [least, most] = std::ranges::minmax(measured.rates);
      fmt::print("  {:<11}{:>10.0f} tasks/s [{:.0f} to {:.0f}]", name, median(measured.rates), least, most);
      if (all_points[at].load.depth == 1) fmt::print("  p50 {:.0f} us", median(measured.latencies));
      if (name != "baton") fmt::print("  baton does {:.2f} x", own / median(measured.rates));
      if (measured.failures > 0) fmt::print("  {} FAILED", measured.failures);
      fmt::print("\n");
    }
  }
  const double fused = median(series.back()["baton"].rates);
  const double unfused = median(series[series.size() - 2]["baton"].rates);
  fmt::print("fused over unfused: {:.2f} x\n", fused / unfused);
}
