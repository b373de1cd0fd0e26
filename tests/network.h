// For tests of the client: a server with a faulty network before it, and callbacks that are counted.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "client/client.h"
#include "tests/proxy.h"
#include "tests/scripted_server.h"
#include "tests/served.h"

namespace baton::client {

inline ClientOptions to(const std::string& address) {
  return {.addresses = {address}, .backoff_min = milliseconds(5), .backoff_max = milliseconds(100)};
}

// A server, and a client that talks to it through a proxy.
struct Network {
  Served server{BATON_PROGRAM};
  Proxy proxy{server.port()};
  Client direct{to(server.address())};  // past the proxy
  Client client{to(proxy.address())};

  void restart() {
    server.kill();
    server.start();
    proxy.set_target(server.port());
    proxy.reset();
  }
};

// Waits for a number of callbacks, and counts how they came.
class Tally {
 public:
  template <class T>
  Callback<T> expects() {
    {
      const std::lock_guard lock(mutex_);
      ++open_;
    }
    return [this](Result<T> result) {
      const std::lock_guard lock(mutex_);
      ++came_[result ? "" : std::string(word(result.error().code))];
      --open_;
      changed_.notify_all();
    };
  }
  // How many came with which error; "" is none.
  std::map<std::string, int> wait() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return open_ == 0; }));
    return came_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int open_ = 0;
  std::map<std::string, int> came_;
};

// What a scripted server says to a command, if it is none of those that begin a connection.
using Words = std::vector<std::string>;
inline std::string greeting_or(const Words& words, const std::string& other) {
  return words[0] == "HELLO" || words[0] == "USE" || words[0] == "AUTH" ? "+OK\r\n" : other;
}

}  // namespace baton::client
