// A worker as a process of its own, so that it can be stopped in the middle of anything:
//   chaos_worker PORT NAME SEED FILE      works until SIGTERM, then writes its history to FILE
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "tests/chaos/people.h"

namespace {

std::atomic<bool> stops = false;

}  // namespace

int main(int argc, char** argv) {
  using namespace baton::chaos;
  if (argc != 5) return 64;
  std::signal(SIGTERM, [](int) { stops = true; });
  History history;
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  work({.name = argv[2], .caller = bare_caller(port), .seed = std::strtoull(argv[3], nullptr, 10)},
       Manner::lively, history, stops);
  std::ofstream file(argv[4]);
  for (const Operation& operation : history.taken()) file << to_line(operation) << '\n';
  return file.flush() ? 0 : 1;
}
