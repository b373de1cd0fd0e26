// A process on a disk that fills up: submits until it is refused, finishes what is under way, and waits until
// it is taken in again.
//   crash_fill DIRECTORY COMPLETIONS [BALLAST]      BALLAST is a file that it removes to make room; else
//   somebody else does
#include <unistd.h>

#include <cstdlib>

#include "tests/crash/speech.h"
#include "tests/crash/vocabulary.h"

namespace baton::crash {
namespace {

constexpr int kSubmissionsMax = 20'000;
constexpr int kWaitMs = 15'000;

Result<core::Submitted> submit(Coordinator& coordinator, int number) {
  const std::string text = std::to_string(number) + std::string(2000, 'x');
  return coordinator.submit({.ns = kNamespace, .queue = kKept, .payload = Blob(text)});
}

bool complete_one(Coordinator& coordinator) {
  const auto leased = coordinator.lease({.ns = kNamespace, .queues = {kKept}, .worker = "w"});
  if (!leased || !*leased) return false;
  return coordinator
      .complete(
          {.ns = kNamespace, .task = (*leased)->task, .lease = (*leased)->lease, .result = Blob("done")})
      .has_value();
}

int run(const std::string& directory, int completions, const char* ballast) {
  CoordinatorOptions options = small_options();
  options.log.segment_bytes = 256 << 10;
  auto opened = Coordinator::open(directory, options);
  if (!opened) return complain(opened.error());
  Coordinator& coordinator = **opened;
  int submitted = 0;
  for (; submitted < kSubmissionsMax; ++submitted) {
    if (const auto done = submit(coordinator, submitted); !done) {
      say("refused {} after {}: {}", word(done.error().code), submitted, done.error().message);
      break;
    }
  }
  int completed = 0;
  while (completed < completions && complete_one(coordinator)) ++completed;
  say("completed {}", completed);
  if (ballast != nullptr) ::unlink(ballast);
  say("waiting");
  for (int waited = 0; waited < kWaitMs; waited += 10) {
    if (submit(coordinator, submitted)) {
      say("{}", complete_one(coordinator) ? "resumed" : "resumed by half");
      break;
    }
    ::usleep(10'000);
  }
  if (const auto closed = coordinator.close(); !closed) return complain(closed.error());
  return 0;
}

}  // namespace
}  // namespace baton::crash

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return baton::crash::run(argv[1], std::atoi(argv[2]), argc > 3 ? argv[3] : nullptr);
}
