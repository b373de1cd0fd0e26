// A PostgreSQL server of the test's own: in a temporary directory, on a socket there and a free port, gone
// with the object.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tests/free_port.h"
#include "tests/temporary_directory.h"

namespace baton {

class Cluster {
 public:
  // Durable or not: a benchmark has to wait for the disk, a test has not.
  enum class Flushes { on, off };

  // The folder with the newest server's programs, 15 or later; nothing if there is none.
  static std::optional<std::string> programs();

  explicit Cluster(Flushes flushes = Flushes::off);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  void start();
  void stop();  // at once, as in a crash; everything is still there after the next start

  std::uint16_t port() const { return port_.number(); }  // on 127.0.0.1
  std::string url(const std::string& database = "postgres") const;
  // A new database, as a copy of another if one is named.
  std::string create(const std::string& database, const std::string& from = "template0") const;

 private:
  const TemporaryDirectory directory_;
  const Flushes flushes_;
  const FreePort port_;
  pid_t server_ = 0;
};

}  // namespace baton
