#include "tests/pipeline/subjects.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/random_name.h"
#include "pipeline/directory_coordinator.h"
#include "pipeline/memory_coordinator.h"
#include "pipeline/redis_coordinator.h"
#include "pipeline/server_coordinator.h"
#include "tests/pipeline/redis_server.h"
#include "tests/served.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

// Leases that end in real time end soon. But whoever waits for the disk with every word, as all of these do,
// has to get through with some of them meanwhile, on a busy machine too.
constexpr Duration kShortLease = milliseconds(1500);

class InMemory : public contract::Subject {
 public:
  std::unique_ptr<DistributedCoordinator> connect() override {
    return std::make_unique<MemoryCoordinator>(exchange_);
  }
  Duration lease() const override { return kLostAfter; }
  void let_pass(Duration time) override {
    now_ms_ += time.ms;
    exchange_.time_has_passed();
  }

 private:
  std::atomic<std::int64_t> now_ms_ = 1;
  MemoryExchange exchange_{{.now = [this] { return Instant{now_ms_}; }}};
};

class InRealTime : public contract::Subject {
 public:
  Duration lease() const override { return kShortLease; }
  // The time of a lease that another process counts, so there is nothing to wait for but time itself.
  void let_pass(Duration time) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(time.ms + 5));
  }
};

class InADirectory : public InRealTime {
 public:
  std::unique_ptr<DistributedCoordinator> connect() override {
    return std::make_unique<DirectoryCoordinator>(DirectoryCoordinatorOptions{
        .directory = directory_.path() + "/run", .lease = kShortLease, .poll = milliseconds(2)});
  }

 private:
  TemporaryDirectory directory_;
};

class AtAServer : public InRealTime {
 public:
  std::unique_ptr<DistributedCoordinator> connect() override {
    static Served server(BATON_PROGRAM);  // one for all runs, as it would be
    ServerCoordinatorOptions options{.run = run_, .lease = kShortLease};
    options.client.addresses = {server.address()};
    return std::make_unique<ServerCoordinator>(options);
  }

 private:
  const std::string run_ = "run-" + random_name();
};

class AtRedis : public InRealTime {
 public:
  std::unique_ptr<DistributedCoordinator> connect() override {
    static RedisServer server;
    return std::make_unique<RedisCoordinator>(
        RedisCoordinatorOptions{.host = server.path(), .run = run_, .lease = kShortLease});
  }

 private:
  const std::string run_ = "run-" + random_name();
};

template <class S>
std::unique_ptr<contract::Subject> make() {
  return std::make_unique<S>();
}

}  // namespace

const std::vector<Transport>& transports() {
  static const std::vector<Transport> all = {{"Memory", make<InMemory>},
                                             {"Directory", make<InADirectory>},
                                             {"Server", make<AtAServer>},
                                             {"Redis", make<AtRedis>}};
  return all;
}

}  // namespace baton::pipeline
