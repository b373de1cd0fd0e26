// The life of a task in code: submitted, taken, extended, failed, taken again, completed, looked at.
//
//   build/release/example_life my-data
//
// docs/library.md quotes this file, and a test holds the two together.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "engine/coordinator.h"

namespace {

// Stops at the first thing that goes wrong. A program of your own would look at error().code.
template <class T>
T must(baton::Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", std::string(baton::word(result.error().code)).c_str(),
                 result.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace

int main(int argc, char** argv) {
  baton::CoordinatorOptions options;
  options.log.segment_bytes = std::uint64_t{8} << 20;       // a small disk will do
  options.engine.rules.retention_age = baton::minutes(10);  // how long a finished task can be asked for
  const auto coordinator = must(baton::Coordinator::open(argc > 1 ? argv[1] : "example-data", options));

  // The submitter. With the key, a repeated submission is the same task and not a second one.
  const auto submitted =
      must(coordinator->submit({.ns = "shop",
                                .queue = "invoices",
                                .payload = baton::Blob("order 4711"),
                                .key = "invoice-4711",
                                .priority = 5,
                                .retry = {.max_failures = 3, .base = baton::milliseconds(0)},
                                .max_hold = baton::hours(1)}));
  std::printf("task %s%s\n", baton::core::to_text(submitted.task).c_str(),
              submitted.existed ? ", again" : "");

  // A worker says how many tasks it can hold, then takes them one by one until there is none.
  must(coordinator->heartbeat("shop", "printer-1", 4));
  while (const auto leased = must(coordinator->lease(
             {.ns = "shop", .queues = {"invoices"}, .worker = "printer-1", .ttl = baton::seconds(10)}))) {
    std::printf("attempt %u at '%s'\n", leased->attempt,
                std::string(baton::text_of(leased->payload)).c_str());

    // While it works: extend well before the ttl is over. lease_lost means stop, somebody else may have it.
    const auto extended = coordinator->extend(
        {.ns = "shop", .task = leased->task, .lease = leased->lease, .ttl = baton::seconds(10)});
    if (!extended) continue;

    if (leased->attempt == 1) {
      const auto failed = must(coordinator->fail(
          {.ns = "shop", .task = leased->task, .lease = leased->lease, .reason = baton::Blob("paper jam")}));
      std::printf("failed, and %s\n",
                  failed.outcome == baton::core::Ended::retried ? "will be tried again" : "given up");
      continue;
    }
    const auto done = must(coordinator->complete(
        {.ns = "shop", .task = leased->task, .lease = leased->lease, .result = baton::Blob("page 1 of 1")}));
    std::printf("%s\n", done.cancelled ? "too late: the result is discarded" : "completed");
  }

  // Anybody: how it went, by id or by key, until the retention is over.
  const auto view = must(coordinator->get("shop", baton::TaskRef::by_key("invoice-4711")));
  const auto result = must(coordinator->read(view.note));
  std::printf("%s after %u attempts: '%s'\n", std::string(name_of(view.state)).c_str(), view.attempt,
              std::string(baton::text_of(result)).c_str());

  must(coordinator->close());  // without it the next start takes this for a crash, which is safe
}
