#include "tests/sim/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/mutant.h"
#include "engine/describe.h"
#include "engine/recovery.h"
#include "engine/snapshot.h"
#include "tests/sim/violation.h"

namespace baton::sim {
namespace {

constexpr std::int64_t kLatenessMs = 5;  // L5: an answer leaves this soon after it became durable
constexpr SecretKey kKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};

}  // namespace

// What a configuration file may change between two starts.
std::uint64_t Node::configured(Knob knob) const {
  const std::uint64_t value = around_.scenario[knob];
  if (around_.scenario[Knob::reconfigured] == 0 || incarnation_ % 4 < 2) return value;
  return knob == Knob::segment_bytes ? value * 2 : knob == Knob::retention_count ? value / 2 : value + 5;
}

log::Options Node::log_options() const {
  return {.segment_bytes = configured(Knob::segment_bytes),
          .batch_bytes = around_.scenario[Knob::batch_bytes]};
}

engine::EngineOptions Node::options() {
  const Scenario& scenario = around_.scenario;
  engine::EngineOptions options;
  options.rules.payload_bytes_max = scenario[Knob::batch_bytes] - 700;
  options.rules.tasks_max = scenario[Knob::tasks_max];
  options.rules.retention_age = milliseconds(static_cast<std::int64_t>(scenario[Knob::retention_ms]));
  options.rules.retention_count = configured(Knob::retention_count);
  options.cache_bytes = scenario[Knob::cache_bytes];
  options.digest_every = static_cast<std::uint32_t>(configured(Knob::digest_every));
  options.due_per_turn = static_cast<std::uint32_t>(scenario[Knob::due_per_turn]);
  options.purge_visits_per_turn = 2;
  options.rules.streams.entry_bytes_max = log::record_bytes_max(log_options());
  options.rules.streams.failures_max = 3;
  options.rules.streams.losses_max = 3;
  options.rules.streams.suspect_after = 1;
  options.rules.streams.retry_unit = milliseconds(20);
  options.rules.streams.offered_for = milliseconds(100);
  options.rules.streams.kept_for = milliseconds(500);
  options.rules.streams.idle_for = seconds(20);
  rules_ = options.rules;
  options.observer = [this](const core::Event& event, const core::Stamp& stamp) {
    around_.trace.note(1, stamp.lsn, engine_->state().digest);
    if (around_.trace.wanted) around_.trace.line("                 " + engine::describe(event, stamp));
    around_.witness.entry(event, stamp, engine_->state(), rules_);
    const bool moved = std::holds_alternative<core::BlobMoved>(event) ||
                       std::holds_alternative<core::MessageBlobMoved>(event);
    around_.faults.struck(Fault::blob_moved, moved);
  };
  return options;
}

Start Node::start() {
  ++incarnation_;
  const Scenario& scenario = around_.scenario;
  around_.witness.ledger().compare_with_disk(around_.disk);
  engine::RecoverOptions recover_options{.log = log_options(),
                                         .epoch_at_least = engine::epoch_by_clock(around_.clock.wall())};
  recover_options.uuid_if_new.bytes.fill(std::byte{0x5a});
  auto recovered = engine::recover(around_.disk, recover_options);
  if (!recovered) {
    why_not_ = recovered.error().message;
    const Errc code = recovered.error().code;
    return code == Errc::io_failed || code == Errc::no_space ? Start::failed : Start::refused;
  }
  const bool lying = scenario.mode() == Mode::lying;
  const core::Lsn last = recovered->state.last;
  if (lying && last < around_.promises.acknowledged()) {
    around_.faults.struck(Fault::lie_lost_entries);
    around_.promises.forget(last);
  }
  around_.witness.recovered(recovered->state, around_.promises.acknowledged(), lying);
  around_.trace.note(2, last, recovered->state.digest);
  if (recovered->snapshot != 0) around_.faults.struck(Fault::started_from_snapshot);
  if (recovered->log.dropped) around_.faults.struck(Fault::torn_tail_dropped);
  if (recovered->replayed > last - recovered->snapshot)
    throw Violation{"L4", "recovery replays more than there is"};

  const log::Uuid uuid = recovered->log.writer->uuid();
  time_ = std::make_unique<engine::CoordinatorTime>(around_.clock, recovered->state.time);
  log_ = std::make_unique<SimLog>(std::move(recovered->log.writer));
  housekeeper_ = std::make_unique<engine::Housekeeper>(
      around_.disk, log_->writer().segments(), uuid, recovered->snapshot,
      engine::HousekeeperOptions{.snapshot_every_bytes = scenario[Knob::snapshot_bytes]});
  const core::Epoch epoch = log_->writer().epoch();
  engine_ = std::make_unique<engine::Engine>(std::move(recovered->state), *log_, epoch, options());
  around_.witness.deciding(nullptr, nullptr);
  turns_ = std::make_unique<engine::Turns>(engine::Surroundings{
      *engine_, *log_, around_.disk, *time_, *housekeeper_, log_options(), [](const std::string&) {}});
  proven_ = last;
  for (bool all = false; !all || log_->durable() < log_->last();) {
    all = engine_->start(time_->now(), kKey);
    log_->start_flush();
    if (log_->is_flushing() && !log_->perform()) {
      why_not_ = log_->failure().error().message;
      die();
      return Start::failed;
    }
  }
  check_blobs();
  stalled_until_ = 0;
  plan_prepare();
  wake(around_.clock.now);
  return Start::running;
}

void Node::die() {
  turns_.reset();
  engine_.reset();
  housekeeper_.reset();
  log_.reset();
  time_.reset();
  backlog_.clear();
  waiting_.clear();
  turn_planned_ = false;
  housekeeping_ = false;
  snapshot_.reset();
  snapshot_entry_ = 0;
  ++incarnation_;
}

void Node::wake(std::int64_t at) {
  at = std::max(at, around_.clock.now);
  if (turn_planned_ && turn_at_ <= at) return;
  turn_planned_ = true;
  turn_at_ = at;
  around_.agenda.plan(at, Due::turn, incarnation_, ++turns_planned_);
}

void Node::arrive(std::uint64_t call, std::uint64_t tried, const core::Request& request) {
  backlog_.push_back({.call = call, .tried = tried, .request = &request});
  idle_ = false;
  wake(around_.clock.now);
}

void Node::heartbeat(std::string_view ns, std::string_view worker, std::uint32_t capacity,
                     const core::Capabilities& capabilities) {
  engine_->heartbeat(ns, worker, capacity, capabilities);
}

bool Node::turn(std::uint64_t number) {
  if (number != turns_planned_) return true;  // another one was planned for an earlier time
  turn_planned_ = false;
  if (around_.clock.now < stalled_until_) {
    wake(stalled_until_);
    return true;
  }
  around_.witness.deciding(nullptr, nullptr);
  turns_->begin(std::exchange(idle_, true));
  while (!backlog_.empty() && handle(backlog_.front())) {
    waiting_.push_back(std::move(backlog_.front()));
    backlog_.pop_front();
  }
  around_.witness.deciding(nullptr, nullptr);
  if (snapshot_ && engine_->record_snapshot(snapshot_->lsn, snapshot_->digest)) {
    snapshot_.reset();
    snapshot_entry_ = engine_->state().last;
  }
  plan_flush();
  deliver();
  if (!log_->failure()) return false;
  if (turns_->end()) want_snapshot();
  rules_.admit_submissions = engine_->admission() == engine::Admission::open;
  if (log_->take_wish_for_successor()) plan_prepare();
  // A full batch is flushed first; the flush's end wakes us.
  if (!log_->is_flushing() || log_->has_room()) wake(around_.clock.now + turns_->wait().ms);
  return true;
}

bool Node::handle(Asked& asked) {
  core::Request request = asked.move ? core::Request(*asked.move) : *asked.request;
  const core::State& state = engine_->state();
  if (!asked.move && log_->has_room()) {
    around_.coverage.count(request, around_.witness.history(), state.key, engine_->now(), state.epoch,
                           asked.tried > 1);
  }
  around_.witness.deciding(&request, &engine_->workers());
  if (!engine_->handle(waiting_.size(), request)) return false;
  asked.decided_at = engine_->now();
  asked.handled = around_.clock.now;
  if (engine_->admission() == engine::Admission::closed) {
    asked.expected = {.refusal = Errc::exhausted};
    return true;
  }
  const core::Moment at{engine_->now(), state.epoch, state.last + 1, rules_};
  asked.expected = around_.witness.expected(at);
  return true;
}

void Node::deliver() {
  engine_->release([&](engine::Answer answer) {
    Asked asked = std::move(waiting_.front());
    waiting_.pop_front();
    if (around_.clock.now > std::max({durable_since_, stalled_until_, asked.handled}) + kLatenessMs)
      throw Violation{"L5",
                      fmt::format("an answer that was durable at {} ms leaves only now", durable_since_)};
    if (auto wrong = difference(asked.expected, answer.reply)) throw Violation{"model", *wrong};
    if (asked.move) return;
    around_.promises.leave(*asked.request, answer, asked.decided_at, log_->durable(),
                           around_.witness.history());
    around_.trace.note(3, asked.call, answer.lsn);
    if (answer.reply) {
      if (const auto* granted = std::get_if<core::Granted>(&*answer.reply)) {
        auto bytes = answer.payload ? Result<Bytes>(*answer.payload) : read(granted->payload);
        const bool good =
            bytes && (granted->payload.length == 0 || content_hash(*bytes) == granted->payload.hash);
        if (!good && !may_miss_bytes())
          throw Violation{"I2", fmt::format("the payload of task {}, kept with entry {}, cannot be read",
                                            granted->task.lsn, granted->payload.lsn)};
      }
    } else if (answer.reply.error().code == Errc::exhausted) {
      around_.faults.struck(Fault::submission_refused, !rules_.admit_submissions);
    }
    deliver_(asked.call, asked.tried, std::move(answer));
  });
  if (snapshot_entry_ != 0 && snapshot_entry_ <= log_->durable()) {
    snapshot_entry_ = 0;
    around_.agenda.plan(around_.clock.now + 1, Due::clean_up, incarnation_);
  }
}

void Node::plan_flush() {
  const bool was_flushing = log_->is_flushing();
  log_->start_flush();
  if (was_flushing || !log_->is_flushing()) return;
  const std::uint64_t most = around_.scenario[Knob::flush_ms] + 1;
  const auto usual = static_cast<std::int64_t>(mix(around_.scenario.seed, log_->last()) % most);
  flush_ends_ = around_.clock.now + usual + std::exchange(flush_delay_, 0);
  around_.agenda.plan(flush_ends_, Due::flush, incarnation_);
}

void Node::plan_prepare() { around_.agenda.plan(around_.clock.now + 1, Due::prepare, incarnation_); }

bool Node::flush() {
  const core::Lsn before = log_->durable();
  idle_ = false;
  if (!log_->perform()) {
    // A segment of few batches is full before anyone has looked at the disk.
    const log::Options options = log_options();
    const bool many_batches = options.segment_bytes >= 8 * log::batch_extent_max(options);
    if (log_->failure().error().code == Errc::no_space && many_batches)
      throw Violation{"I21", "the process ends for want of space that should have been set aside"};
    return false;
  }
  proven_ = before;  // by the batch that stands behind it now
  durable_since_ = around_.clock.now;
  if (!log_->writer().successor().ready()) plan_prepare();
  if (!mutant(Mutant::m24_wake_up_lost_after_flush)) wake(around_.clock.now);
  return true;
}

bool Node::prepare() {
  (void)log_->writer().successor().prepare();  // remembered there, and tried again
  return true;
}

bool Node::stop() {
  const auto flush_all = [&] {
    while (log_->durable() < log_->last() || log_->is_flushing()) {
      log_->start_flush();
      if (log_->is_flushing() && !log_->perform()) return false;
    }
    log_->start_flush();
    return true;
  };
  durable_since_ = around_.clock.now;
  bool good = flush_all();
  if (good) deliver();
  around_.witness.deciding(nullptr, nullptr);
  if (good && engine_->seal()) good = flush_all() && log_->writer().close().has_value();
  die();
  return good;
}

}  // namespace baton::sim
