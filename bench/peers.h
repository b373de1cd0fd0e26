// The servers that are measured side by side, each started on a directory of its own, and how a task's life
// is spelled in their protocols.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::bench {

enum class Step : std::uint8_t { submit, lease, complete, complete_and_lease };

// One reply, taken apart as far as the next step of the same task needs it.
struct Reply {
  std::size_t length = 0;  // 0: not all of it is there yet
  bool failed = false;
  bool empty = false;  // nothing to lease
  std::string held;    // what names the task and its lease in the next step
};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual std::string name() const = 0;
  virtual std::uint16_t port() const = 0;
  virtual pid_t process() const = 0;
  virtual void put(std::string& out, Step step, std::string_view held, std::string_view payload) const = 0;
  virtual Reply take(std::string_view input, Step step) const = 0;
};

// Null where the program is not installed.
std::unique_ptr<Peer> start_baton(const std::string& program, const std::string& directory);
std::unique_ptr<Peer> start_redis(const std::string& directory);
std::unique_ptr<Peer> start_beanstalkd(const std::string& directory);
// Not a queue: one thread that reads what has come, writes it to a log, flushes, and replies. It bounds what
// a single-threaded server with one flush for each round can reach with this client.
std::unique_ptr<Peer> start_floor(const std::string& directory);

int connect_to(std::uint16_t port);  // exits if it cannot

}  // namespace baton::bench
