// The server program, started as a process of its own on a free port, on a directory that outlives it.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tests/crash/child.h"
#include "tests/temporary_directory.h"

namespace baton {

// What a server is put into, where its own directory and our environment will not do.
struct Surroundings {
  std::string directory;                                              // of its data; empty: one of its own
  std::vector<std::pair<std::string, std::string>> environment = {};  // in addition to ours
};

class Served {
 public:
  // `program` is the path of `baton`; `options` come behind those that say where.
  explicit Served(std::string program, std::vector<std::string> options = {}, Surroundings surroundings = {})
      : program_(std::move(program)),
        options_(std::move(options)),
        surroundings_(std::move(surroundings)),
        directory_(surroundings_.directory.empty() ? data_.path() + "/data" : surroundings_.directory) {
    start();
  }

  std::uint16_t port() const { return port_; }
  std::uint16_t http_port() const { return http_port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  const std::string& directory() const { return directory_; }

  void kill() {  // -9
    if (!child_) return;
    child_->signal(SIGKILL);
    if (child_->wait(crash::after_ms(10'000)).signal != SIGKILL) early_ends_.push_back(child_->errors());
    child_.reset();
  }
  // What it said when it ended although nobody had killed it, for each time that was so.
  const std::vector<std::string>& early_ends() const { return early_ends_; }
  void start() {  // on what the last one left behind, on another port
    std::vector<std::string> command = {program_,   "serve",       "--data", directory_,
                                        "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"};
    command.insert(command.end(), options_.begin(), options_.end());
    child_ = std::make_unique<crash::Child>(
        crash::ChildOptions{.command = std::move(command), .environment = surroundings_.environment});
    port_ = 0;
    const auto port_behind = [](const std::string& line, std::string_view mark) {
      const std::size_t at = line.find(mark);
      if (at == std::string::npos) return std::uint16_t{0};
      return static_cast<std::uint16_t>(std::atoi(line.c_str() + line.find(':', at + mark.size()) + 1));
    };
    child_->listen(crash::after_ms(30'000), [&](const std::string& line) {
      port_ = port_behind(line, "serves RESP on ");
      http_port_ = port_behind(line, "and HTTP on ");
      return port_ == 0;
    });
    BATON_CHECK(port_ != 0 && "the server did not start");
  }
  // As a person would; true if it ended well.
  bool stop() {
    child_->signal(SIGTERM);
    return child_->wait(crash::after_ms(30'000)).code == 0;
  }
  // What it said to standard error, once it has ended.
  std::string errors() const { return child_->errors(); }
  void pause() { child_->stop(); }
  void go_on() { child_->signal(SIGCONT); }

 private:
  const std::string program_;
  const std::vector<std::string> options_;
  const Surroundings surroundings_;
  const TemporaryDirectory data_;
  const std::string directory_;
  std::unique_ptr<crash::Child> child_;
  std::vector<std::string> early_ends_;
  std::uint16_t port_ = 0;
  std::uint16_t http_port_ = 0;
};

// Waits until it holds; false if it does not come to that.
template <class Holds>
bool eventually(Holds holds, std::int64_t limit_ms = 30'000) {
  for (const auto end = crash::after_ms(limit_ms); std::chrono::steady_clock::now() < end;) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return holds();
}

}  // namespace baton
