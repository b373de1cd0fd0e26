#include <thread>

#include "base/check.h"
#include "client/work_coordinator.h"
#include "server/server.h"
#include "tests/peer.h"
#include "tests/stream/backend.h"
#include "tests/stream/moved_clock.h"
#include "tests/temporary_directory.h"

namespace baton::stream {
namespace {

// A server on a thread of this process, and clients that reach it through its socket.
class ServedBackend final : public Backend {
 public:
  ServedBackend() {
    server::ServerOptions options;
    options.directory = directory_.path() + "/data";
    options.coordinator.clock = &clock_;
    options.coordinator.on_note = [](const std::string&) {};
    auto opened = server::Server::open(std::move(options));
    BATON_CHECK(opened);
    server_ = std::move(*opened);
    thread_ = std::thread([this] { (void)server_->run(); });
  }
  ~ServedBackend() override {
    server_->stop();
    thread_.join();
  }
  std::unique_ptr<WorkCoordinator> connect() override {
    return std::make_unique<client::WorkCoordinator>(client::ClientOptions{.addresses = {address()}});
  }
  void let_time_pass(Duration duration) override { clock_.move(duration); }
  int replay_dead_letters() override { return count_of("STREAM_REPLAY"); }
  int purge_dead_letters() override { return count_of("STREAM_PURGE"); }
  std::vector<std::string> options_of_command() const override { return {"--connect", address()}; }

 private:
  int count_of(const std::string& command) {
    server::Peer operator_of_it(server_->address().port);
    return std::stoi(server::value_of(operator_of_it.ask(command), "purged"));
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(server_->address().port); }

  TemporaryDirectory directory_;
  MovedClock clock_;
  std::unique_ptr<server::Server> server_;
  std::thread thread_;
};

}  // namespace

BackendKind served_backend() {
  return {"Served", [] { return std::make_unique<ServedBackend>(); }};
}

}  // namespace baton::stream
