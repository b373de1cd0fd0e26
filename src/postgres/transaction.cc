#include "postgres/transaction.h"

#include "base/pause.h"
#include "postgres/errors.h"
#include "postgres/work_calls.h"
#include "postgres/work_rows.h"

namespace baton::postgres {

using stream::Handling;
using stream::Lane;
using stream::Outcome;

Result<Rows> Transaction::run(const Statement& statement, Arguments arguments) {
  const std::vector<Call> calls{{statement, std::move(arguments)}};
  auto rows = connection_.run(calls, {});
  if (!rows) return std::unexpected(error_of(rows.error()));
  return std::move(rows->front());
}

void Transaction::send(stream::NewMessage message, Lane lane) {
  (lane == Lane::outbox ? outbox_ : inbox_).push_back(std::move(message));
}

Transactions::Transactions(DatabaseOptions options, std::int32_t partitions)
    : options_(std::move(options)), partitions_(partitions) {}

stream::Handler Transactions::handler(Handler work) {
  return [this, work = std::move(work)](const Handling& handling) { return run(work, handling); };
}

namespace {

// A host that is gone does not end its transactions, and neither does a process that was stopped: the server
// has to notice, for they hold locks. The same times as libpq is told for the other direction.
std::string short_of_silence(Duration idle_max) {
  return "set idle_in_transaction_session_timeout = " + std::to_string(idle_max.ms) +
         "; set tcp_keepalives_idle = 15; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3";
}

}  // namespace

Result<std::unique_ptr<Connection>> Transactions::connection() {
  {
    const std::scoped_lock lock(idle_.mutex);
    while (!idle_.connections.empty()) {
      auto kept = std::move(idle_.connections.back());
      idle_.connections.pop_back();
      if (kept->is_alive()) return kept;
    }
  }
  auto opened = Connection::open(options_.url, options_.connect_timeout, options_.call_max);
  if (!opened) return std::unexpected(error_of(opened.error()));
  if (auto set = (*opened)->execute(short_of_silence(options_.transaction_idle_max)); !set)
    return std::unexpected(error_of(set.error()));
  return std::move(*opened);
}

// The completion and what is sent, and only if the message is still ours.
Status Transactions::commit(Transaction& transaction, const Handling& handling) {
  const stream::MessageStatus status = handling.work.lane == Lane::outbox
                                           ? stream::MessageStatus::published
                                           : stream::MessageStatus::event_stored;
  Touched touched;
  touched.reported[handling.work.lane == Lane::outbox ? 0 : 1] = {handling.work.held()};
  touched.store(Lane::outbox, transaction.outbox_);
  touched.store(Lane::inbox, transaction.inbox_);
  std::vector<Call> calls{lock_call(handling.instance, touched, partitions_),
                          complete_call(handling.instance, handling.work.lane,
                                        {{.held = handling.work.held(), .status = status}}, false)};
  if (!transaction.outbox_.empty())
    calls.push_back(store_call(handling.instance, Lane::outbox, transaction.outbox_, partitions_));
  if (!transaction.inbox_.empty())
    calls.push_back(store_call(handling.instance, Lane::inbox, transaction.inbox_, partitions_));
  auto rows = transaction.connection_.run(calls, {});
  if (!rows) return std::unexpected(error_of(rows.error()));
  if (verdicts_of((*rows)[1], 1).front() != stream::Verdict::ok)
    return failure(Errc::lease_lost, "the message is no longer ours");
  if (auto committed = transaction.connection_.execute("commit"); !committed)
    return std::unexpected(error_of(committed.error()));
  return {};
}

namespace {

// Of a commit that failed. Where the message is not to blame it goes back; if it was committed and only the
// answer was lost, or somebody else has it by now, there is nothing to be given back.
Outcome outcome_of(const Error& error) {
  switch (error.code) {
    case Errc::unavailable:
    case Errc::outcome_unknown:
    case Errc::lease_lost: return stream::given_back();
    default: return stream::failed(error.message);
  }
}

}  // namespace

Outcome Transactions::run(const Handler& work, const Handling& handling) {
  auto opened = connection();
  if (!opened || !(*opened)->execute("begin")) {
    // A database that is away is not the message's fault, but asking again at once would not bring it back.
    pause(options_.backoff_max, handling.lost);
    return stream::given_back();
  }
  Connection& connection = **opened;
  Transaction transaction(connection, handling.lost);
  // One that throws, or whose connection broke, leaves a connection that is not kept: its end undoes it all.
  Outcome outcome = work(transaction, handling.work);
  if (outcome.kind == Outcome::Kind::done) {
    if (const Status committed = commit(transaction, handling); !committed)
      return outcome_of(committed.error());
    outcome = stream::reported();
  } else if (!connection.execute("rollback")) {
    return outcome;
  }
  const std::scoped_lock lock(idle_.mutex);
  idle_.connections.push_back(std::move(*opened));
  return outcome;
}

}  // namespace baton::postgres
