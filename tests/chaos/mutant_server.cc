// The server with a deliberate fault, so that the chaos around it can be seen to notice: called as `baton
// serve`, with the fault's number in BATON_MUTANT.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "base/mutant.h"
#include "server/server.h"

int main(int argc, char** argv) {
  using namespace baton;
  const char* fault = std::getenv("BATON_MUTANT");
  active_mutant = static_cast<Mutant>(fault != nullptr ? std::atoi(fault) : 0);
  server::ServerOptions options;
  for (int at = 1; at + 1 < argc; ++at) {
    if (std::strcmp(argv[at], "--data") == 0) options.directory = argv[at + 1];
  }
  options.coordinator.log.segment_bytes = std::uint64_t{4} << 20;
  auto opened = server::Server::open(std::move(options));
  if (!opened) return fmt::print(stderr, "{}\n", opened.error().message), 1;
  fmt::print("serves RESP on 127.0.0.1:{}\n", (*opened)->address().port);
  std::fflush(stdout);
  return (*opened)->run() ? 0 : 1;
}
