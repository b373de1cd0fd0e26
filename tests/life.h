// An engine on a simulated disk whose clock and flushes a test moves by hand.
#pragma once

#include <optional>
#include <vector>

#include "engine/coordinator_time.h"
#include "engine/engine.h"
#include "engine/recovery.h"
#include "log/writer.h"
#include "tests/sim/sim_disk.h"

namespace baton::engine::testing {

inline constexpr Instant kStart{1'000'000'000};
inline constexpr SecretKey kKey{1, 2};
inline constexpr log::Options kSmallLog{.segment_bytes = 64 << 10, .batch_bytes = 8 << 10};

// A log whose flushes happen when the test says so.
class StepLog final : public log::Log {
 public:
  explicit StepLog(std::unique_ptr<log::LogWriter> writer) : writer_(std::move(writer)) {}

  bool has_room() const override { return writer_->has_room(); }
  log::Place append(std::uint16_t type, Instant time, ByteView body) override {
    return writer_->append(type, time, body);
  }
  void start_flush() override {
    if (!flush_) flush_ = writer_->begin_flush();
  }
  log::Lsn last() const override { return writer_->last(); }
  log::Lsn durable() const override { return writer_->durable(); }
  Status failure() const override { return failure_; }
  bool end_segment() override { return writer_->successor().prepare() && writer_->end_segment(); }

  // Carries out the flush in flight, if there is one.
  void perform() {
    if (!flush_ || !failure_) return;
    failure_ = writer_->perform(*flush_);
    if (!failure_) return;
    writer_->finish(std::move(*flush_));
    flush_.reset();
  }
  log::LogWriter& writer() { return *writer_; }

 private:
  std::unique_ptr<log::LogWriter> writer_;
  std::optional<log::Flush> flush_;
  Status failure_;
};

class HandClock final : public Clock {
 public:
  Instant wall() override { return wall_time; }
  Duration since_boot() override { return boot_time; }
  void pass(Duration time) { wall_time = wall_time + time, boot_time = boot_time + time; }

  Instant wall_time = kStart;
  Duration boot_time = seconds(100);
};

// One life of a coordinator: made from what is on the disk, gone without a trace but for what was synced.
class Life {
 public:
  Life(sim::SimDisk& disk, HandClock& clock, EngineOptions options = {})
      : recovered_(recover(disk, {.log = kSmallLog})) {
    BATON_CHECK(recovered_.has_value());
    time_.emplace(clock, recovered_->state.time);
    const core::Epoch epoch = recovered_->log.writer->epoch();
    log_.emplace(std::move(recovered_->log.writer));
    engine_.emplace(std::move(recovered_->state), *log_, epoch, std::move(options));
    while (!engine_->start(time_->now(), kKey)) flush();
    flush();
  }

  void turn() { engine_->begin_turn(time_->now()); }
  void handle(core::Request request, std::uint64_t ticket = 0) {
    BATON_CHECK(engine_->handle(ticket, request));
  }
  void flush() {
    log_->start_flush();
    log_->perform();
  }
  std::vector<Answer> answers() {
    std::vector<Answer> given;
    engine_->release([&](Answer answer) { given.push_back(std::move(answer)); });
    return given;
  }
  // Turn, request, flush, answer.
  Answer ask(core::Request request) {
    turn();
    handle(std::move(request));
    flush();
    auto given = answers();
    BATON_CHECK(given.size() == 1);
    return std::move(given.front());
  }
  template <class Reply>
  Reply expect(core::Request request) {
    return std::get<Reply>(ask(std::move(request)).reply.value());
  }

  Engine& engine() { return *engine_; }
  const core::State& state() const { return engine_->state(); }
  StepLog& log() { return *log_; }
  CoordinatorTime& time() { return *time_; }

 private:
  Result<Recovered> recovered_;
  std::optional<CoordinatorTime> time_;
  std::optional<StepLog> log_;
  std::optional<Engine> engine_;
};

inline core::SubmitTask a_task(std::string payload = "work") {
  return {.ns = "n", .queue = "q", .payload = core::Blob(payload)};
}
inline core::LeaseTask a_lease(Duration ttl = seconds(10)) {
  return {.ns = "n", .queues = {"q"}, .worker = "w", .ttl = ttl};
}
inline core::CompleteTask a_completion(const core::Granted& granted) {
  return {.ns = "n", .task = granted.task, .lease = granted.lease};
}

}  // namespace baton::engine::testing
