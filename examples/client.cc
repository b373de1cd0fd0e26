// A whole program: hands in a task, does it, and reads the result.
#include <cstdio>
#include <string>

#include "client/client.h"
#include "client/worker.h"

int main(int argc, char** argv) {
  baton::client::Client client({.addresses = {argc > 1 ? argv[1] : "127.0.0.1:7077"}});

  const auto upper = [](const baton::client::Job& job, std::stop_token) -> baton::Result<std::string> {
    if (job.payload.empty()) return baton::failure(baton::Errc::invalid_request, "nothing to do");
    std::string text = job.payload;
    for (char& letter : text)
      letter = static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 32 : letter);
    return text;
  };
  const auto worker =
      baton::client::Worker::start(client, {.name = "me", .slots = 4, .handlers = {{"upper", upper}}});
  if (!worker) return 1;

  const auto task = client.submit({.queue = "upper", .payload = "hello", .key = "hello-1"});
  if (!task) {
    std::fprintf(stderr, "%s\n", task.error().message.c_str());
    return 1;
  }
  const auto ended = client.wait(task->task, baton::minutes(1));
  if (ended) std::printf("%s: %s\n", ended->view.state.c_str(), ended->result.c_str());
}
