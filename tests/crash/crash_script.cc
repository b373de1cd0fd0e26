// A short life in a fixed order, for the test that lets each of its system calls fail: tasks through every
// outcome, a full segment, two snapshots, segments removed, a clean stop. Says what was acknowledged, as
// crash_worker does.
//   crash_script DIRECTORY ROUND [report]      with "report" only what was recovered, then a clean stop
#include <cstdlib>

#include "tests/crash/speech.h"
#include "tests/crash/vocabulary.h"

namespace baton::crash {
namespace {

class Script {
 public:
  Script(Coordinator& coordinator, std::string round) : coordinator_(coordinator), round_(std::move(round)) {}

  void play() {
    for (int count = 0; count < 4; ++count) submit(kKept);
    for (int count = 0; count < 2; ++count) complete();
    settle('f');
    settle('l');
    cancel();
    pause(true);
    fill();
    snapshot();
    purge();
    complete();
    fill();
    snapshot();
    pause(false);
    fill();
    snapshot();
    complete();
  }

 private:
  std::string next_key() { return fmt::format("k.{}.0.{}", round_, submitted_++); }

  void submit(const char* queue) {
    const std::string key = next_key();
    const auto done =
        coordinator_.submit({.ns = kNamespace, .queue = queue, .payload = Blob(payload_of(key)), .key = key});
    if (done) return say("s {} {} 0", key, core::to_text(done->task));
    say("x s {} {}", word(done.error().code), key);
  }

  // So many entries, each in a batch of its own, that a segment is full: then the one before can be a
  // snapshot.
  void fill() {
    for (int count = 0; count < 8; ++count) submit(kKept);
    for (int count = 0; count < 3; ++count) submit(kPurged);
    complete(kPurged);
    complete(kPurged);
  }

  std::optional<LeasedTask> lease(const char* queue) {
    const std::int64_t asked = clock_ms();
    auto leased =
        coordinator_.lease({.ns = kNamespace, .queues = {queue}, .worker = "w", .ttl = seconds(60)});
    if (!leased) say("x g {} -", word(leased.error().code));
    if (!leased || !*leased) return {};
    say("g {} {} {} {} {} {}", core::to_text((*leased)->task), core::to_text((*leased)->lease),
        (*leased)->ttl.ms, asked, clock_ms(), hash_text(text_of((*leased)->payload)));
    return std::move(*leased);
  }

  void settle(char how, const char* queue = kKept) {
    const auto held = lease(queue);
    if (!held) return;
    const std::string task = core::to_text(held->task);
    const std::string id = core::to_text(held->lease);
    say("{}? {} {}", how, task, id);
    auto done =
        how == 'c' ? coordinator_.complete({.ns = kNamespace,
                                            .task = held->task,
                                            .lease = held->lease,
                                            .result = Blob(result_of(task, id))})
        : how == 'f'
            ? coordinator_.fail({.ns = kNamespace, .task = held->task, .lease = held->lease, .final = true})
            : coordinator_.release({.ns = kNamespace, .task = held->task, .lease = held->lease});
    if (!done) return say("x {} {} -", how, word(done.error().code));
    say("{} {} {} {}", how, task, id, static_cast<int>(done->outcome));
  }
  void complete(const char* queue = kKept) { settle('c', queue); }

  void cancel() {
    const std::string key = fmt::format("k.{}.0.{}", round_, submitted_ - 1);
    say("k? {}", key);
    const auto done =
        coordinator_.cancel({.ns = kNamespace, .task = TaskRef::by_key(key), .actor = "client"});
    if (done) return say("k {}", key);
    say("x k {} {}", word(done.error().code), key);
  }

  void pause(bool on) {
    say("p? {:d}", on);
    const Status done =
        on ? coordinator_.pause({kNamespace, kPaused}) : coordinator_.resume({kNamespace, kPaused});
    if (done) return say("p {:d}", on);
    say("x p {} -", word(done.error().code));
  }

  void purge() {
    say("z?");
    const auto done = coordinator_.purge({.ns = kNamespace, .queue = kPurged});
    if (done) return say("z {}", done->count);
    say("x z {} -", word(done.error().code));
  }

  void snapshot() {
    const auto done = coordinator_.make_snapshot();
    if (done) return say("n");
    say("x n {} -", word(done.error().code));
  }

  Coordinator& coordinator_;
  const std::string round_;
  unsigned submitted_ = 0;
};

int run(const std::string& directory, const std::string& round, bool only_report) {
  auto opened = Coordinator::open(directory, small_options());
  if (!opened) return complain(opened.error());
  Coordinator& coordinator = **opened;
  report(coordinator);
  if (!only_report) Script(coordinator, round).play();
  if (const auto closed = coordinator.close(); !closed) return complain(closed.error());
  return 0;
}

}  // namespace
}  // namespace baton::crash

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return baton::crash::run(argv[1], argv[2], argc > 3);
}
