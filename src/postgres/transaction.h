// Handlers whose effect happens exactly once: what they change in the database, that the message is done, and
// the messages they send are one transaction. If the lease was lost, none of it happens.
//
//   Transactions transactions({.url = url});
//   ProcessorOptions options{.service = "payments",
//                            .handlers = {{"OrderPlaced", transactions.handler(take_payment)}}};
//
//   Outcome take_payment(Transaction& transaction, const Work& work) {
//     constexpr Statement kPay{"pay", "update accounts set amount = amount - $1 where name = $2"};
//     auto paid = transaction.run(kPay, std::move(Arguments().add(price).add(customer)));
//     if (!paid) return failed(paid.error().message);
//     transaction.send({.id = {fresh_uuid()}, .stream = work.stream, .target = "shipping", …});
//     return done();
//   }
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "postgres/connection.h"
#include "postgres/work_coordinator.h"
#include "stream/handler.h"

namespace baton::postgres {

// A transaction that is open while a handler runs.
class Transaction {
 public:
  // A statement is prepared once for each connection, under its name. After a failure the transaction is good
  // for nothing but its end. When the lease is lost, the statement under way is cancelled.
  Result<Rows> run(const Statement& statement, Arguments arguments = {});
  // Into the outbox, or the inbox of this same service, when all is well.
  void send(stream::NewMessage message, stream::Lane lane = stream::Lane::outbox);
  std::stop_token lost() const { return lost_; }

 private:
  friend class Transactions;
  Transaction(Connection& connection, std::stop_token lost) : connection_(connection), lost_(lost) {}
  std::unexpected<Error> failed(const Trouble& trouble);

  Connection& connection_;
  std::stop_token lost_;
  std::optional<Trouble> trouble_;  // the first: those behind it say no more than that there was one
  bool is_committed_ = false;
  std::vector<stream::NewMessage> outbox_, inbox_;
};

// Connections for handlers, one for each that runs, kept for the next.
class Transactions {
 public:
  using Handler = std::function<stream::Outcome(Transaction&, const stream::Work&)>;

  // Told of what keeps messages from being handled though no handler is to blame; may be empty. On the
  // threads of handlers, and it must not block.
  using OnTrouble = std::function<void(const Error&)>;

  explicit Transactions(DatabaseOptions options, std::int32_t partitions = stream::kPartitions,
                        OnTrouble trouble = {});

  // For a Processor; this outlives it. `done()` commits, anything else undoes what the handler did. Where the
  // database was in trouble the message goes back uncounted, whatever the handler makes of it.
  stream::Handler handler(Handler work);

 private:
  struct Idle {
    std::mutex mutex;
    std::vector<std::unique_ptr<Connection>> connections;
  };

  stream::Outcome run(const Handler& work, const stream::Handling& handling);
  stream::Outcome attempt(const Handler& work, Transaction& transaction, const stream::Handling& handling);
  stream::Outcome rest(const Trouble& trouble, const stream::Handling& handling);
  std::expected<std::unique_ptr<Connection>, Trouble> connection();
  std::expected<std::unique_ptr<Connection>, Trouble> begin(const std::stop_token& lost);
  void end(std::unique_ptr<Connection> connection, bool is_committed);
  Status commit(Transaction& transaction, const stream::Handling& handling);

  const DatabaseOptions options_;
  const std::int32_t partitions_;
  const OnTrouble trouble_;
  Idle idle_;
};

}  // namespace baton::postgres
