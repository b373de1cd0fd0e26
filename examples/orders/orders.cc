// A shop: an order is paid, what is paid is shipped, and of what is shipped a letter tells. Any number of
// instances share the work; each may be killed at any moment, and the books are right all the same.
//
//   example_orders open URL CUSTOMERS ORDERS
//   example_orders work URL
//   example_orders books URL
//
// A customer is a stream, so the orders of each are handled one after the other. Each step is a transaction:
// what it changes, that its message is done, and the message for the next step.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "postgres/migrations.h"
#include "postgres/transaction.h"
#include "postgres/work_coordinator.h"
#include "stream/fresh_uuid.h"
#include "stream/processor.h"

namespace {

using namespace baton;
using namespace baton::stream;
using postgres::Arguments;
using postgres::Statement;
using postgres::Transaction;

constexpr const char* kUsage = R"(usage:
  example_orders open URL CUSTOMERS ORDERS   migrates the database, makes the shop's tables, and places so many
                                             orders for each of so many customers
  example_orders work URL                    works until it is interrupted; start several
  example_orders books URL                   says what was paid, shipped and written about

URL is a PostgreSQL database of its own: postgresql:///shop, or as libpq takes it.
)";
constexpr int kExitUsage = 64;

constexpr const char* kTables = R"sql(
  create table customers (customer integer primary key, balance integer not null, paid integer not null, shipped integer not null);
  create table letters (message_id uuid primary key, customer integer not null)
)sql";

// An order that does not follow the one before finds no row: then order was lost.
constexpr Statement kPay{"pay", R"sql(
  update customers set balance = balance - ($1::json ->> 'amount')::integer, paid = paid + 1
  where customer = ($1::json ->> 'customer')::integer and paid = ($1::json ->> 'order')::integer - 1
  returning customer
)sql"};
constexpr Statement kShip{"ship", R"sql(
  update customers set shipped = shipped + 1
  where customer = ($1::json ->> 'customer')::integer and shipped = ($1::json ->> 'order')::integer - 1
  returning customer
)sql"};
// A letter may be handed over twice, and is written once.
constexpr Statement kWrite{"write", R"sql(
  insert into letters select $1, ($2::json ->> 'customer')::integer on conflict do nothing
)sql"};

template <class T>
T expect(Result<T> result) {
  if (!result) std::fprintf(stderr, "%s\n", result.error().message.c_str()), std::exit(1);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// The same for what the database itself says.
template <class T>
T reached(std::expected<T, postgres::Trouble> result) {
  if (!result) std::fprintf(stderr, "%s\n", result.error().message.c_str()), std::exit(1);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

NewMessage next_step(const Work& work, const char* type, const char* target) {
  return {.id = {fresh_uuid()}, .stream = work.stream, .target = target, .type = type, .data = work.data};
}

// One step: the row it changes is there exactly if it is this order's turn.
Outcome step(Transaction& transaction, const Work& work, const Statement& statement) {
  const auto changed = transaction.run(statement, std::move(Arguments().add(std::string_view(work.data))));
  if (!changed) return failed(changed.error().message);
  if (changed->size() != 1) return failed("this order does not follow the one before");
  return done();
}

Outcome pay(Transaction& transaction, const Work& work) {
  transaction.send(next_step(work, "OrderPaid", "ship"), Lane::inbox);
  return step(transaction, work, kPay);
}

Outcome ship(Transaction& transaction, const Work& work) {
  transaction.send(next_step(work, "OrderShipped", "letters"));
  return step(transaction, work, kShip);
}

// The world outside, which knows a letter again by the message's id.
class Post final : public Sink {
 public:
  explicit Post(std::string url) : url_(std::move(url)) {}

  Status publish(const Work& work, std::stop_token) override {
    auto connection = postgres::Connection::open(url_, seconds(5));
    if (!connection) return failure(Errc::unavailable, connection.error().message);
    const std::vector<postgres::Call> calls{
        {kWrite, std::move(Arguments().add(work.message.value).add(std::string_view(work.data)))}};
    const auto written = (*connection)->run(calls, {});
    if (!written) return failure(Errc::unavailable, written.error().message);
    return {};
  }

 private:
  const std::string url_;
};

void open(const std::string& url, int customers, int orders) {
  expect(postgres::migrate(url));
  auto connection = reached(postgres::Connection::open(url, seconds(5)));
  reached(connection->execute(kTables));
  reached(connection->execute("insert into customers select c, 0, 0, 0 from generate_series(1, " +
                              std::to_string(customers) + ") as c"));
  postgres::WorkCoordinator coordinator({.url = url});
  const Instance clerk{.id = {fresh_uuid()}, .service = "shop"};
  expect(coordinator.heartbeat(clerk));
  for (int customer = 1; customer <= customers; ++customer) {
    const StreamId stream{fresh_uuid()};
    std::vector<NewMessage> placed;
    for (int order = 1; order <= orders; ++order) {
      placed.push_back({.id = {fresh_uuid()},
                        .stream = stream,
                        .target = "pay",
                        .type = "OrderPlaced",
                        .data = "{\"customer\": " + std::to_string(customer) +
                                ", \"order\": " + std::to_string(order) + ", \"amount\": 5}"});
    }
    expect(coordinator.store(clerk.id, Lane::inbox, placed));
  }
  expect(coordinator.leave(clerk.id));
}

void work(const std::string& url) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  postgres::WorkCoordinator coordinator({.url = url});
  postgres::Transactions transactions({.url = url});
  Post post(url);
  auto processor = expect(Processor::start(
      coordinator,
      {.service = "shop",
       .handlers = {{"OrderPlaced", transactions.handler(pay)}, {"OrderPaid", transactions.handler(ship)}},
       .sink = &post,
       .in_hand_max = 40,
       .lease = seconds(2),  // short, since this shop's instances die often
       .stale = seconds(10),
       .poll = milliseconds(500),
       .trouble = [](const Error& error) { std::fprintf(stderr, "%s\n", error.message.c_str()); }}));
  std::puts("open");
  std::fflush(stdout);
  int caught = 0;
  sigwait(&signals, &caught);
  processor->drain();
}

void books(const std::string& url) {
  auto connection = reached(postgres::Connection::open(url, seconds(5)));
  const std::vector<postgres::Call> calls{{{"books",
                                            "select concat('paid ', sum(paid), ', shipped ', sum(shipped), "
                                            "', earned ', -sum(balance), ', letters ', "
                                            "(select count(*) from letters)) from customers"},
                                           {}}};
  const auto rows = reached(connection->run(calls, {}));
  std::printf("%s\n", std::string(rows.front().text(0, 0)).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const int customers = argc == 5 ? std::atoi(argv[3]) : 0;
  const int orders = argc == 5 ? std::atoi(argv[4]) : 0;
  if (what == "open" && customers > 0 && orders > 0) {
    open(argv[2], customers, orders);
  } else if (what == "work" && argc == 3) {
    work(argv[2]);
  } else if (what == "books" && argc == 3) {
    books(argv[2]);
  } else {
    const bool asked = what == "--help" || what == "-h";
    std::fputs(kUsage, asked ? stdout : stderr);
    return asked ? 0 : kExitUsage;
  }
}
