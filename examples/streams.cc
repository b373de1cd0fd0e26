// Ordered messages inside a program: no server, no database, only a data directory.
//
//   build/release/example_streams my-data
//
// Run it twice: what the inbox has seen is not handled again.
#include <cstdio>
#include <semaphore>
#include <string>
#include <vector>

#include "engine/coordinator.h"
#include "engine/work_coordinator.h"
#include "stream/processor.h"

using namespace baton;

namespace {

int give_up(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

stream::Uuid numbered(int number) {
  stream::Uuid uuid;
  uuid.bytes.back() = static_cast<std::byte>(number);
  return uuid;
}

// Whoever sends a message chooses its id, and says the same one when it is sent again.
std::vector<stream::NewMessage> deposits() {
  const stream::StreamId account{numbered(1)};
  std::vector<stream::NewMessage> all;
  for (int number = 1; number <= 3; ++number) {
    all.push_back({.id = {numbered(number)},
                   .stream = account,  // one after the other; those of other accounts go on beside them
                   .target = "book",
                   .type = "Deposit",
                   .data = "{\"amount\": " + std::to_string(100 * number) + "}"});
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  auto opened = Coordinator::open(argc > 1 ? argv[1] : "example-data");
  if (!opened) return give_up(opened.error());
  engine::WorkCoordinator streams(**opened);

  std::counting_semaphore<> handled(0);
  const auto book = [&](const stream::Handling& handling) {
    std::printf("%s is message %d of its stream\n", handling.work.data.c_str(),
                static_cast<int>(handling.work.sequence));
    handled.release();
    return stream::done();
  };
  auto processor =
      stream::Processor::start(streams, {.service = "accounts", .handlers = {{"Deposit", book}}});
  if (!processor) return give_up(processor.error());

  const auto stored = streams.store((*processor)->instance(), stream::Lane::inbox, deposits());
  if (!stored) return give_up(stored.error());
  for (const stream::Verdict verdict : *stored) {
    if (verdict == stream::Verdict::ok)
      handled.acquire();
    else
      std::printf("known from an earlier run\n");
  }
  (*processor)->drain();
  processor->reset();
  return (*opened)->close() ? 0 : 1;
}
