// The loop of the authority, one turn at a time: what time has brought about is recorded first, then each
// request is decided, its entry appended and applied, and its answer held until the log says it is durable.
//
//   handle(request) -> decide -> log.append -> apply -> [ answer waits for its lsn ] -> release()
//
// The engine owns the state and runs on one thread. It knows no socket, no thread and no clock: whoever
// drives it reads the time once per turn and passes it in, in production and in simulation alike.
#pragma once

#include <algorithm>
#include <boost/container/deque.hpp>
#include <cstdint>
#include <functional>
#include <optional>

#include "core/apply.h"
#include "core/decide.h"
#include "core/state.h"
#include "core/worker/worker_registry.h"
#include "engine/blob_cache.h"
#include "log/log.h"

namespace baton::engine {

struct Answer {
  std::uint64_t ticket = 0;  // as given to handle()
  core::Lsn lsn = 0;         // the last entry decided before this answer; all up to it is durable
  Result<core::Reply> reply;
  SharedBytes payload;                   // of a grant, if it was at hand; else it is to be read from the log
  std::vector<SharedBytes> bodies = {};  // likewise of each message that was handed out
};

// What the disk has room for.
enum class Admission : std::uint8_t {
  open,
  no_submissions,  // nearly full: what is under way may finish
  closed,          // full: nothing that may need an entry
};

struct EngineOptions {
  // Sees every entry as it is recorded, before it is durable: to be shown only when its lsn is.
  std::function<void(const core::Event&, const core::Stamp&)> observer;
  core::Rules rules;
  std::size_t cache_bytes = std::size_t{64} << 20;
  std::uint32_t digest_every = 4096;          // entries between two StateDigest records
  std::uint32_t due_per_turn = 1024;          // expiries recorded in one turn, so that no turn is long
  std::uint32_t purge_visits_per_turn = 256;  // queues looked at for finished tasks to forget
};

class Engine {
 public:
  // `state` is what recovery gave; `log` goes on behind it, in `epoch`, and outlives the engine.
  Engine(core::State state, log::Log& log, core::Epoch epoch, EngineOptions options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Records the new epoch, then every lease that expired in the meantime. False while the log has no room:
  // flush and call again. Requests are handled only after this has returned true and all of it is durable.
  bool start(Instant now, const SecretKey& key_if_new);

  // Begins a turn: what time has brought about since the last one.
  void begin_turn(Instant now);
  // Time has gone on within the turn: what came since is judged by when it came. Nothing is recorded for it.
  void look_at_clock(Instant now) { now_ = std::max(now_, now); }
  // Decides one request. Null if the log has no room; then the request is untouched and comes again later.
  // Nobody may hear the answer before all up to its lsn is durable. It is there until the next is decided.
  const Answer* decide(core::Request& request);
  // Likewise, and keeps the answer until it may leave. False if the log has no room.
  bool handle(std::uint64_t ticket, core::Request& request);
  // A worker's word about itself; soft, never logged.
  void heartbeat(std::string_view ns, std::string_view worker, std::uint32_t capacity,
                 core::Capabilities capabilities);
  // Records that a snapshot exists. False while the log has no room.
  bool record_snapshot(core::Lsn lsn, std::uint64_t digest);
  // An entry for its own sake, when nothing else is going on: whatever stands behind the last batch proves
  // that batch was whole. False while the log has no room.
  bool mark();
  // The last entry of a clean stop. False while the log has no room.
  bool seal();

  // An instance is told what it holds: it is alive, and takes that up.
  void note_resumption(const std::string& ns, stream::InstanceId instance);
  bool has_resumed(const std::string& ns, stream::InstanceId instance, core::Lsn claim) const;

  // Hands out the answers that may leave, in order.
  void release(const std::function<void(Answer&&)>& deliver);
  bool has_waiting_answers() const { return !answers_.empty(); }
  const Answer& last_answer() const { return answers_.back(); }  // of a handle() just now

  void admit(Admission admission);
  Admission admission() const { return admission_; }
  const core::State& state() const { return state_; }
  const core::WorkerRegistry& workers() const { return workers_; }
  const core::Rules& rules() const { return options_.rules; }
  Instant now() const { return now_; }
  // When time alone will next bring something about, if it will.
  std::optional<Instant> next_due() const;

 private:
  core::Moment moment() const;
  bool record(const core::Event& event);
  bool record_due(core::Moment at);
  void forget_finished();
  void forget_streams();
  const Answer* answer(auto&& reply);
  void keep_bytes(const core::Request& request, core::Lsn lsn);
  void keep_bodies(const core::ProcessWork& request, const core::WorkProcessed& reply, std::uint64_t number);
  void find_bodies(core::WorkProcessed& reply);

  EngineOptions options_;
  log::Log& log_;
  const core::Epoch epoch_;
  core::State state_;
  core::WorkerRegistry workers_;
  BlobCache cache_;
  BlobCache bodies_;  // of messages, by number
  Instant now_;
  Admission admission_ = Admission::open;
  Bytes body_;     // of the entry being encoded
  Answer answer_;  // to what was decided last; so large that it is made where it stays
  // Many to a block: an answer is so large that std::deque would allocate each alone.
  boost::container::deque<Answer, void, boost::container::deque_options_t<boost::container::block_size<64>>>
      answers_;
  core::Lsn last_digest_ = 0;
  core::Slot purge_cursor_ = 1;
  Instant registry_swept_;
};

}  // namespace baton::engine
