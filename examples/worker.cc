// Works on tasks until it is interrupted; then finishes what it has begun.
//
//   build/dev/example_worker 127.0.0.1:7077
#include <csignal>
#include <cstdio>
#include <string>

#include "client/worker.h"

int main(int argc, char** argv) {
  // Before there are threads, so that each of them leaves the signals to us.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  baton::client::Client client({.addresses = {argc > 1 ? argv[1] : "127.0.0.1:7077"}});
  const auto greet = [](const baton::client::Job& job, std::stop_token) -> baton::Result<std::string> {
    if (job.payload.empty()) return baton::failure(baton::Errc::invalid_request, "whom?");
    return "hello " + job.payload;
  };
  const auto worker = baton::client::Worker::start(
      client,
      {.name = "greeter",
       .slots = 4,
       .handlers = {{"greetings", greet}},
       .trouble = [](const baton::Error& error) { std::fprintf(stderr, "%s\n", error.message.c_str()); }});
  if (!worker) {
    std::fprintf(stderr, "%s\n", worker.error().message.c_str());
    return 1;
  }
  int caught = 0;
  sigwait(&signals, &caught);
  (*worker)->drain();
  std::printf("%d done\n", static_cast<int>((*worker)->counts().completed));
}
