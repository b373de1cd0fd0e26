// A connection to PostgreSQL: statements go out together, as one transaction, and come back together.
//
// It is used by one thread at a time. The only other thing that may happen meanwhile is that a stop token is
// asked to stop; then the statements under way are cancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "postgres/arguments.h"
#include "stream/uuid.h"

struct pg_conn;    // libpq's PGconn
struct pg_result;  // and PGresult

namespace baton::postgres {

// A statement is prepared once for each connection. The name is for people who look at the server.
struct Statement {
  const char* name;
  const char* sql;
};
struct Call {
  Statement statement;
  Arguments arguments;
};

// What a statement returned, in binary form.
class Rows {
 public:
  explicit Rows(pg_result* result) : result_(result) {}

  pg_result* get() const { return result_.get(); }
  int size() const;
  int columns() const;
  std::string_view name(int column) const;
  bool is_null(int row, int column) const;
  std::int16_t int2(int row, int column) const;
  std::int32_t int4(int row, int column) const;
  std::int64_t int8(int row, int column) const;
  std::string_view text(int row, int column) const;  // empty for null
  stream::Uuid uuid(int row, int column) const;

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::string_view bytes(int row, int column) const;

  std::unique_ptr<pg_result, Clear> result_;
};

// A failure of the database: what PostgreSQL calls it, and whether it happened for sure.
struct Trouble {
  std::string sqlstate;  // empty: the connection broke
  std::string message;
  bool sent = false;         // with a broken connection: the outcome is unknown
  bool is_outdated = false;  // what was prepared once does not fit the tables any more; it will be anew
};

class Connection {
 public:
  // Calls that take longer than `call_max` are given up; zero: none is. A server that cannot be reached any
  // more is noticed in any case.
  static std::expected<std::unique_ptr<Connection>, Trouble> open(const std::string& url, Duration timeout,
                                                                  Duration call_max = {});
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // One Rows for each call. If one fails, none of them has happened.
  std::expected<std::vector<Rows>, Trouble> run(std::span<const Call> calls, std::stop_token stop);
  // Any number of statements as text, without results.
  std::expected<void, Trouble> execute(const std::string& sql, std::stop_token stop = {});
  // Waits until somebody notifies a channel this connection listens to, with a payload that is wanted. False:
  // time is up, or it was stopped.
  std::expected<bool, Trouble> wait_for_notification(Duration at_most, std::stop_token stop,
                                                     const std::function<bool(std::string_view)>& wanted);

  bool is_alive();  // and fit for another call

 private:
  enum class Woken : std::uint8_t { readable, stopped, timeout };

  Connection(pg_conn* connection, int stop_event, Duration call_max);
  bool send(std::span<const Call> calls);
  std::expected<std::vector<Rows>, Trouble> receive(std::span<const Call> calls, std::stop_token stop);
  std::expected<Rows, Trouble> take(std::stop_token stop);
  std::expected<void, Trouble> take_sync(std::stop_token stop);
  std::expected<pg_result*, Trouble> next_result(std::stop_token stop);
  std::int64_t time_left() const;  // for the call under way, in milliseconds; -1: any
  Woken wait(bool to_write, std::int64_t timeout_ms);
  bool begin_call();
  void wake_up();  // whoever waits, from any thread
  void cancel();
  Trouble broken(bool sent) const;

  pg_conn* const connection_;
  const int stop_event_;
  const Duration call_max_;
  std::int64_t call_until_ = 0;  // on the steady clock, in milliseconds
  bool cancelled_ = false;       // for good: the cancellation may come late, and would end the next call
  std::uint64_t last_prepared_ = 0;
  std::map<std::string, std::string, std::less<>> prepared_;  // names by SQL: two may have the same name
  std::vector<bool> preparing_;  // of the calls being run: a preparation goes before
};

}  // namespace baton::postgres
