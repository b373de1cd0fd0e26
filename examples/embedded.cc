// baton inside a program: no server, no other process, only a data directory.
//
//   build/release/example_embedded my-data
//
// Run it twice, or kill it half-way: it goes on where the log says it was.
#include <cstdio>
#include <string>

#include "engine/coordinator.h"

int main(int argc, char** argv) {
  auto opened = baton::Coordinator::open(argc > 1 ? argv[1] : "example-data");
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return 1;
  }
  baton::Coordinator& coordinator = **opened;

  // A key makes submitting safe to repeat: the same key and content again is the same task.
  for (const char* name : {"alice", "bob", "carol"}) {
    const auto submitted = coordinator.submit({.ns = "mail",
                                               .queue = "greetings",
                                               .payload = baton::Blob(std::string("hello ") + name),
                                               .key = std::string("greet-") + name});
    if (!submitted) {
      std::fprintf(stderr, "%s\n", submitted.error().message.c_str());
      return 1;
    }
    std::printf("%s is task %s%s\n", name, baton::core::to_text(submitted->task).c_str(),
                submitted->existed ? ", known from an earlier run" : "");
  }

  for (;;) {
    const auto leased = coordinator.lease({.ns = "mail", .queues = {"greetings"}, .worker = "me"});
    if (!leased || !*leased) break;
    const baton::LeasedTask& task = **leased;
    std::printf("working on: %.*s\n", static_cast<int>(task.payload.size()),
                baton::text_of(task.payload).data());
    const auto verdict = coordinator.complete(
        {.ns = "mail", .task = task.task, .lease = task.lease, .result = baton::Blob("sent")});
    if (verdict && verdict->cancelled) std::printf("too slow: somebody else has it now\n");
  }
  return coordinator.close() ? 0 : 1;
}
