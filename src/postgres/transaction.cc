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
  auto rows = connection_.run(calls, lost_);
  if (!rows) return failed(rows.error());
  return std::move(rows->front());
}

std::unexpected<Error> Transaction::failed(const Trouble& trouble) {
  if (!trouble_) trouble_ = trouble;
  return std::unexpected(error_of(trouble));
}

void Transaction::send(stream::NewMessage message, Lane lane) {
  (lane == Lane::outbox ? outbox_ : inbox_).push_back(std::move(message));
}

Transactions::Transactions(DatabaseOptions options, std::int32_t partitions, OnTrouble trouble)
    : options_(std::move(options)), partitions_(partitions), trouble_(std::move(trouble)) {}

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

std::expected<std::unique_ptr<Connection>, Trouble> Transactions::connection() {
  {
    const std::scoped_lock lock(idle_.mutex);
    while (!idle_.connections.empty()) {
      auto kept = std::move(idle_.connections.back());
      idle_.connections.pop_back();
      if (kept->is_alive()) return kept;
    }
  }
  auto opened = Connection::open(options_.url, options_.connect_timeout, options_.call_max);
  if (!opened) return opened;
  if (auto set = (*opened)->execute(short_of_silence(options_.transaction_idle_max)); !set)
    return std::unexpected(set.error());
  return opened;
}

std::expected<std::unique_ptr<Connection>, Trouble> Transactions::begin(const std::stop_token& lost) {
  auto opened = connection();
  if (!opened) return opened;
  if (auto begun = (*opened)->execute("begin isolation level read committed", lost); !begun)
    return std::unexpected(begun.error());
  return opened;
}

// A connection that broke, or was stopped, is not kept: its end undoes it all.
void Transactions::end(std::unique_ptr<Connection> connection, bool is_committed) {
  if (!is_committed && (!connection->is_alive() || !connection->execute("rollback"))) return;
  const std::scoped_lock lock(idle_.mutex);
  idle_.connections.push_back(std::move(connection));
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
  auto rows = transaction.connection_.run(calls, handling.lost);
  if (!rows) return transaction.failed(rows.error());
  if (verdicts_of((*rows)[1], 1).front() != stream::Verdict::ok)
    return failure(Errc::lease_lost, "the message is no longer ours");
  // Not to be stopped any more: nobody would know whether it has happened.
  if (auto committed = transaction.connection_.execute("commit"); !committed)
    return transaction.failed(committed.error());
  transaction.is_committed_ = true;
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

Outcome Transactions::attempt(const Handler& work, Transaction& transaction, const Handling& handling) {
  const Outcome outcome = work(transaction, handling.work);
  if (outcome.kind != Outcome::Kind::done) return outcome;
  if (const Status committed = commit(transaction, handling); !committed)
    return outcome_of(committed.error());
  return stream::reported();
}

// A database in trouble is not the message's fault, but asking again at once would not help it. What others
// were in the way of is worth another try soon.
Outcome Transactions::rest(const Trouble& trouble, const Handling& handling) {
  if (trouble_ && !handling.lost.stop_requested()) trouble_(error_of(trouble));
  const bool others_were_in_the_way = trouble.sqlstate.starts_with("40");
  const bool is_soon = others_were_in_the_way || trouble.is_outdated;
  pause(is_soon ? options_.backoff_min : options_.backoff_max, handling.lost);
  return stream::given_back();
}

Outcome Transactions::run(const Handler& work, const Handling& handling) {
  auto begun = begin(handling.lost);
  if (!begun) return rest(begun.error(), handling);
  Transaction transaction(**begun, handling.lost);
  const auto is_not_to_blame = [&] {
    if (transaction.is_committed_ || !transaction.trouble_) return false;
    const Trouble& trouble = *transaction.trouble_;
    const bool was_stopped =
        handling.lost.stop_requested() && (is_cancelled(trouble) || trouble.sqlstate.empty());
    return was_stopped || is_of_the_database(trouble);
  };
  Outcome outcome;
  try {
    outcome = attempt(work, transaction, handling);
  } catch (...) {
    begun->reset();
    if (is_not_to_blame()) return rest(*transaction.trouble_, handling);
    throw;
  }
  end(std::move(*begun), transaction.is_committed_);
  if (is_not_to_blame()) return rest(*transaction.trouble_, handling);
  return outcome;
}

}  // namespace baton::postgres
