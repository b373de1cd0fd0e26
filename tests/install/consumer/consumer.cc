// Somebody else's program: whether what was installed is whole.
#include <cstdio>

#include "client/client.h"
#include "client/worker.h"

int main() {
  baton::client::Client client({.addresses = {"127.0.0.1:1"}});
  const auto task = client.submit({.queue = "q", .payload = "x"}, baton::milliseconds(20));
  const auto worker = baton::client::Worker::start(client, {});
  if (task || task.error().code != baton::Errc::unavailable || worker) return 1;
  std::printf("%.*s\n", static_cast<int>(word(task.error().code).size()), word(task.error().code).data());
}
