// chaos_instance ADDRESS FOLDER: an instance of the service "steps" on streams of a coordinator. Before it is
// done with a message it notes it in a file of its own, which a kill does not take away.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "client/work_coordinator.h"
#include "stream/processor.h"
#include "tests/stream/journal.h"

namespace baton::stream {
namespace {

int work(const std::string& address, const std::string& folder) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const std::string path = folder + "/" + std::to_string(::getpid()) + ".journal";
  const int journal = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (journal < 0) return 1;

  client::WorkCoordinator coordinator({.addresses = {address}, .backoff_max = milliseconds(200)});
  const auto handle = [&](const Handling& handling) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // so long is a step
    const std::string line = line_of({*handling.work.stream, handling.work.sequence, handling.work.epoch});
    if (::write(journal, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      return failed("no room");
    return done();
  };
  auto processor = Processor::start(coordinator, {.service = "steps",
                                                  .handlers = {{"Step", handle}},
                                                  .in_hand_max = 40,
                                                  .lease = seconds(2),  // short: instances die often
                                                  .stale = seconds(10),
                                                  .poll = milliseconds(500),
                                                  .backoff_max = seconds(1)});
  if (!processor) return 1;
  std::puts("open");
  std::fflush(stdout);
  int caught = 0;
  sigwait(&signals, &caught);
  (*processor)->drain();
  return 0;
}

}  // namespace
}  // namespace baton::stream

int main(int argc, char** argv) { return argc == 3 ? baton::stream::work(argv[1], argv[2]) : 2; }
