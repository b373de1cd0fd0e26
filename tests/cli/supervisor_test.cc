// The service manager hears from the program when it serves, that it lives, and when it stops. // X6
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/check.h"
#include "tests/crash/child.h"
#include "tests/temporary_directory.h"

namespace baton::cli {
namespace {

// What systemd does: a datagram socket, and the environment that names it.
class ServiceManager {
 public:
  explicit ServiceManager(std::string name) : name_(std::move(name)) {
    sockaddr_un address{.sun_family = AF_UNIX};
    std::memcpy(address.sun_path, name_.data(), name_.size());
    if (name_.front() == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    BATON_CHECK(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), length) == 0);
    const timeval patience{30, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~ServiceManager() { ::close(socket_); }
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  std::string next_news() const {
    char bytes[512];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    return count < 0 ? "" : std::string(bytes, static_cast<std::size_t>(count));
  }
  crash::ChildOptions service(const std::string& data, const std::string& watchdog_process = {}) const {
    crash::ChildOptions options{.command = {BATON_PROGRAM, "serve", "--data", data, "--listen", "127.0.0.1:0",
                                            "--http", "127.0.0.1:0"},
                                .environment = {{"NOTIFY_SOCKET", name_}, {"WATCHDOG_USEC", "300000"}}};
    if (!watchdog_process.empty()) options.environment.emplace_back("WATCHDOG_PID", watchdog_process);
    return options;
  }

 private:
  const std::string name_;
  const int socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

TEST(ServiceManager, HearsWhenTheServerServesThatItLivesAndWhenItStops) {
  const TemporaryDirectory directory;
  for (const std::string& name : {directory.path() + "/notify", "@" + directory.path()}) {
    const ServiceManager manager(name);
    crash::Child server(manager.service(directory.path() + "/data"));
    EXPECT_TRUE(manager.next_news().starts_with("READY=1\nSTATUS=serves RESP on 127.0.0.1:"));
    for (int beat = 0; beat < 3; ++beat) EXPECT_EQ(manager.next_news(), "WATCHDOG=1");
    server.signal(SIGTERM);
    std::string news = manager.next_news();
    while (news == "WATCHDOG=1") news = manager.next_news();
    EXPECT_TRUE(news.starts_with("STOPPING=1\n")) << news;
    EXPECT_EQ(server.wait(crash::after_ms(30'000)).code, 0) << server.errors();
  }
}

TEST(ServiceManager, HearsNoHeartbeatThatAnotherProcessIsAskedFor) {
  const TemporaryDirectory directory;
  const ServiceManager manager(directory.path() + "/notify");
  crash::Child server(manager.service(directory.path() + "/data", "1"));
  EXPECT_TRUE(manager.next_news().starts_with("READY=1\n"));
  server.signal(SIGTERM);
  EXPECT_TRUE(manager.next_news().starts_with("STOPPING=1\n"));
}

}  // namespace
}  // namespace baton::cli
