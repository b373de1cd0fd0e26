// A coordinator's own streams: eight instances on a thousand of them that are killed, suspended, sent home
// and hired, and a coordinator that is killed under them. Then nothing may be lost, out of order, or have had
// two holders at once: the log is the witness, and what the instances noted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "client/work_coordinator.h"
#include "core/event_codec.h"
#include "log/posix_disk.h"
#include "log/survey.h"
#include "stream/fresh_uuid.h"
#include "tests/proxy.h"
#include "tests/served.h"
#include "tests/sim/stream_history.h"
#include "tests/sim/violation.h"
#include "tests/stream/chaos.h"
#include "tests/stream/journal.h"
#include "wire/resp_value.h"

namespace baton::stream {
namespace {

constexpr Duration kStaleAfter = seconds(10);  // as chaos_instance has it

// Stores every message once, however often it has to say so.
class Producer {
 public:
  Producer(const std::string& address, int streams, int messages) : coordinator_({.addresses = {address}}) {
    constexpr int kStreamsAtOnce = 50;
    for (int first = 0; first < streams; first += kStreamsAtOnce) {
      auto& batch = batches_.emplace_back();
      for (int i = 0; i < kStreamsAtOnce; ++i) {
        const StreamId stream{fresh_uuid()};
        for (int message = 0; message < messages; ++message)
          batch.push_back(
              {.id = {fresh_uuid()}, .stream = stream, .target = "t", .type = "Step", .data = "{}"});
      }
    }
  }
  void store_all() {
    for (const auto& batch : batches_) {
      while (!is_stored(batch)) continue;  // the client waits between its tries
    }
  }

 private:
  // As an instance that is gone again before it is offered anything.
  bool is_stored(const std::vector<NewMessage>& batch) {
    const Instance clerk{.id = {fresh_uuid()}, .service = "steps"};
    if (!coordinator_.heartbeat(clerk, kStaleAfter)) return false;
    const auto verdicts = coordinator_.store(clerk.id, Lane::inbox, batch);
    (void)coordinator_.leave(clerk.id);
    return verdicts.has_value();
  }

  client::WorkCoordinator coordinator_;
  std::vector<std::vector<NewMessage>> batches_;
};

// What the log says: each entry has to fit what came before it.
struct Told {
  std::string wrong;
  std::size_t stored = 0;
  std::size_t done = 0;
  std::size_t waiting = 0;
};
Told read_log(const std::string& directory) {
  Told told;
  sim::StreamHistory history(kStaleAfter);
  const auto disk = log::PosixDisk::open_read_only(directory);
  if (!disk) return {.wrong = disk.error().message};
  const auto visit = [&](const log::Record& record) -> Status {
    const auto event = core::decode(record.type, record.body);
    if (!event) return std::unexpected(event.error());
    const core::Stamp stamp{.lsn = record.place.lsn, .epoch = record.epoch, .time = record.time};
    std::visit(
        [&](const auto& fact) {
          if constexpr (requires { history.happened(fact, stamp); }) history.happened(fact, stamp);
        },
        *event);
    if (const auto* batch = std::get_if<core::WorkBatchApplied>(&*event)) {
      if (batch->heard) history.demand_nobody_silent(stamp);
      told.stored += batch->stored.size();
      for (const auto& report : batch->reports) told.done += report.how == core::Reported::done;
    }
    return {};
  };
  try {
    const auto survey = log::survey_log(**disk, {.visitor = visit});
    told.wrong = survey ? survey->report.problem.message : survey.error().message;
  } catch (const sim::Violation& violation) {
    told.wrong = violation.id + ": " + violation.what;
  }
  told.waiting = history.waiting();
  return told;
}

// What the instances say: each stream from its first message to its last, and whoever took it over began no
// further on than where the one before him had stopped.
std::string what_is_wrong_in(const Journal& journal, std::int64_t messages) {
  for (const auto& [stream, epochs] : journal) {
    std::int64_t reached = 0;
    for (const auto& [epoch, sequence] : epochs) {
      std::int64_t next = sequence.front();
      if (next > reached + 1) return to_text(stream.value) + ": a message was passed over";
      for (const std::int64_t one : sequence) {
        if (one != next++) return to_text(stream.value) + ": out of order";
      }
      reached = std::max(reached, sequence.back());
    }
    if (reached != messages) return to_text(stream.value) + ": the end is missing";
  }
  return "";
}

std::int64_t left_in(client::Client& client) {
  const auto reply = client.ask({"STREAM_STATUS"});
  if (!reply) return -1;
  std::int64_t left = 0;
  for (const wire::RespValue& lane : reply->find("lanes")->items)
    left += lane.find("waiting")->number + lane.find("held")->number + lane.find("dead")->number;
  return left;
}

// S9, S10, S16, S18, S22
TEST(ChaosAtACoordinator, LosesNothingMixesNothingAndLetsNobodyHoldWhatAnotherHolds) {
  const bool is_long = std::getenv("BATON_LONG") != nullptr;
  const int streams = 1000, messages = is_long ? 100 : 4;
  const std::size_t total = static_cast<std::size_t>(streams) * static_cast<std::size_t>(messages);
  const std::size_t faults_min = is_long ? 100 : 12;
  const unsigned seed = std::getenv("BATON_SEED")
                            ? static_cast<unsigned>(std::atoi(std::getenv("BATON_SEED")))
                            : std::random_device{}();
  SCOPED_TRACE("BATON_SEED=" + std::to_string(seed));
  const TemporaryDirectory directory, journals;
  const std::string data = directory.path() + "/data";
  // Without snapshots, so that the log has all of it from the first entry on.
  Served served(BATON_PROGRAM, {"--snapshot-every-bytes", "1000GiB"}, {.directory = data});
  Proxy proxy(served.port());  // where the coordinator is, wherever it comes back
  Producer producer(proxy.address(), streams, messages);
  std::jthread storing([&] { producer.store_all(); });
  client::Client witness({.addresses = {proxy.address()}});

  Chaos chaos({BATON_CHAOS_INSTANCE, proxy.address(), journals.path()}, seed);
  std::size_t struck = 0;
  for (std::size_t handled = 0; handled < total || struck < faults_min || !chaos.has_done_everything();) {
    if (++struck % 5 == 3) {
      served.kill();
      served.start();
      proxy.set_target(served.port());
      ++chaos.faults["coordinator killed"];
    } else {
      chaos.strike();
    }
    // Something has to be done between two blows, unless nobody is left to do it.
    const std::size_t before = handled;
    eventually(
        [&] {
          handled = lines_in(journals.path());
          return handled > before + total / (is_long ? 100 : 20) || handled >= total;
        },
        is_long ? 3'000 : 1'000);
  }
  chaos.make_peace();
  storing.join();
  EXPECT_TRUE(eventually([&] { return left_in(witness) == 0; }, 120'000)) << left_in(witness) << " are left";
  EXPECT_TRUE(served.stop());

  const Told told = read_log(data);
  EXPECT_EQ(told.wrong, "");
  EXPECT_EQ(told.stored, total);
  EXPECT_EQ(told.done, total);
  EXPECT_EQ(told.waiting, 0u);
  const Journal journal = read_journal(journals.path());
  EXPECT_EQ(journal.size(), static_cast<std::size_t>(streams));
  EXPECT_EQ(what_is_wrong_in(journal, messages), "");
  EXPECT_GE(struck, faults_min);
  for (const char* kind : {"killed", "suspended", "left", "joined", "coordinator killed"})
    EXPECT_GE(chaos.faults[kind], 1) << kind << ": too little went wrong for this run to count";
  std::printf("%zu messages in %d streams, handled %zu times, seed %u:%s\n", total, streams,
              lines_in(journals.path()), seed, chaos.summary().c_str());
}

}  // namespace
}  // namespace baton::stream
