// Submits tasks and waits for their results.
//
//   baton serve --data data &
//   build/dev/example_submit 127.0.0.1:7077 alice bob carol
#include <cstdio>
#include <string>
#include <vector>

#include "client/client.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s HOST:PORT NAME...\n", argv[0]);
    return 2;
  }
  baton::client::Client client({.addresses = {argv[1]}});
  std::vector<std::string> tasks;
  for (int at = 2; at < argc; ++at) {
    // Under a key it is safe to repeat, by the client when a connection breaks and by us when we run again.
    const std::string name = argv[at];
    const auto task = client.submit({.queue = "greetings", .payload = name, .key = "greet-" + name});
    if (!task) {
      std::fprintf(stderr, "%s\n", task.error().message.c_str());
      return 1;
    }
    tasks.push_back(task->task);
  }
  for (const std::string& task : tasks) {
    const auto ended = client.wait(task, baton::minutes(1));
    if (!ended) {
      std::fprintf(stderr, "%s\n", ended.error().message.c_str());
      return 1;
    }
    std::printf("%s: %s %s\n", ended->payload.c_str(), ended->view.state.c_str(),
                (ended->result + ended->reason).c_str());
  }
}
