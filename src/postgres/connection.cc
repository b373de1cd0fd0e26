#include "postgres/connection.h"

#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

namespace baton::postgres {
namespace {

constexpr std::int64_t kCancelledMs = 5'000;  // how long a cancelled call may take to end

std::int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <class T>
T big_endian(std::string_view bytes) {
  T value{};
  for (const char byte : bytes.substr(0, sizeof(T)))
    value = static_cast<T>(value << 8 | static_cast<unsigned char>(byte));
  return value;
}

Trouble trouble_of(const pg_result* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return {.sqlstate = state ? state : "",
          .message = message ? message : PQresultErrorMessage(result),
          .sent = true};
}

// Its rows are not of the same types any more, or somebody has deallocated it. The former may also be said of
// what PostgreSQL cannot do; then it says so again.
bool is_of_what_was_prepared(const Trouble& trouble) {
  return trouble.sqlstate == "0A000" || trouble.sqlstate == "26000";
}

bool is_success(const pg_result* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

}  // namespace

void Rows::Clear::operator()(pg_result* result) const { PQclear(result); }
int Rows::size() const { return PQntuples(result_.get()); }
int Rows::columns() const { return PQnfields(result_.get()); }
std::string_view Rows::name(int column) const { return PQfname(result_.get(), column); }
bool Rows::is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
std::string_view Rows::bytes(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}
std::int16_t Rows::int2(int row, int column) const {
  return static_cast<std::int16_t>(big_endian<std::uint16_t>(bytes(row, column)));
}
std::int32_t Rows::int4(int row, int column) const {
  return static_cast<std::int32_t>(big_endian<std::uint32_t>(bytes(row, column)));
}
std::int64_t Rows::int8(int row, int column) const {
  return static_cast<std::int64_t>(big_endian<std::uint64_t>(bytes(row, column)));
}
std::string_view Rows::text(int row, int column) const { return bytes(row, column); }
stream::Uuid Rows::uuid(int row, int column) const {
  stream::Uuid value;
  std::memcpy(value.bytes.data(), bytes(row, column).data(),
              std::min(value.bytes.size(), bytes(row, column).size()));
  return value;
}

std::expected<std::unique_ptr<Connection>, Trouble> Connection::open(const std::string& url, Duration timeout,
                                                                     Duration call_max) {
  const std::string seconds = std::to_string(std::max<std::int64_t>(2, (timeout.ms + 999) / 1000));
  // Later words win: the URL may name the application, but not another encoding. A server whose machine or
  // network has gone says nothing at all, so it is given up when it acknowledges nothing for half a minute.
  const char* names[] = {"connect_timeout", "application_name",    "tcp_user_timeout",
                         "keepalives_idle", "keepalives_interval", "keepalives_count",
                         "dbname",          "client_encoding",     nullptr};
  const char* values[] = {seconds.c_str(), "baton", "30000", "15", "5", "3", url.c_str(), "UTF8", nullptr};
  pg_conn* connection = PQconnectdbParams(names, values, 1);
  if (PQstatus(connection) != CONNECTION_OK) {
    Trouble trouble{.message = PQerrorMessage(connection)};
    while (trouble.message.ends_with('\n')) trouble.message.pop_back();
    PQfinish(connection);
    return std::unexpected(trouble);
  }
  PQsetnonblocking(connection, 1);
  PQsetNoticeProcessor(connection, [](void*, const char*) {}, nullptr);
  return std::unique_ptr<Connection>(
      new Connection(connection, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), call_max));
}

Connection::Connection(pg_conn* connection, int stop_event, Duration call_max)
    : connection_(connection), stop_event_(stop_event), call_max_(call_max) {}

Connection::~Connection() {
  PQfinish(connection_);
  ::close(stop_event_);
}

Trouble Connection::broken(bool sent) const {
  std::string message = PQerrorMessage(connection_);
  while (message.ends_with('\n')) message.pop_back();
  return {.message = message.empty() ? "the connection broke" : message, .sent = sent};
}

bool Connection::is_alive() {
  // A server that went down has left a last word and then the end, which is only found by reading on.
  pollfd watched{PQsocket(connection_), POLLIN, 0};
  while (PQstatus(connection_) == CONNECTION_OK && ::poll(&watched, 1, 0) > 0) {
    if (PQconsumeInput(connection_) != 1) return false;
  }
  // Replies to a call that was given up would be taken for the next one's, and a cancellation that is still
  // on its way for one of the next.
  return !cancelled_ && PQstatus(connection_) == CONNECTION_OK &&
         PQpipelineStatus(connection_) == PQ_PIPELINE_OFF;
}

std::int64_t Connection::time_left() const {
  if (cancelled_) return kCancelledMs;
  return call_max_ == Duration{} ? -1 : std::max<std::int64_t>(call_until_ - steady_ms(), 0);
}

Connection::Woken Connection::wait(bool to_write, std::int64_t timeout_ms) {
  pollfd watched[] = {{PQsocket(connection_), static_cast<short>(POLLIN | (to_write ? POLLOUT : 0)), 0},
                      {cancelled_ ? -1 : stop_event_, POLLIN, 0}};
  int ready = 0;
  do ready = ::poll(watched, 2, static_cast<int>(timeout_ms));
  while (ready < 0 && errno == EINTR);
  if (ready == 0) return Woken::timeout;
  return watched[1].revents != 0 ? Woken::stopped : Woken::readable;
}

// A cancellation is a connection of its own, and waits without end for a server that stands still: for that
// there is a thread that nobody waits for. If it fails, the call ends as it would have, or is given up.
void Connection::cancel() {
  cancelled_ = true;
  std::unique_ptr<PGcancel, decltype(&PQfreeCancel)> handle(PQgetCancel(connection_), &PQfreeCancel);
  if (!handle) return;
  try {
    std::thread([handle = std::move(handle)] {
      char why[256];
      PQcancel(handle.get(), why, sizeof why);
    }).detach();
  } catch (const std::system_error&) {
    // No thread to be had.
  }
}

bool Connection::send(std::span<const Call> calls) {
  preparing_.clear();
  if (PQenterPipelineMode(connection_) != 1) return false;
  for (const Call& call : calls) {
    // Twice in one go: the second finds what the first has prepared.
    const auto [known, is_new] = prepared_.try_emplace(call.statement.sql);
    preparing_.push_back(is_new);
    if (is_new) known->second = std::string(call.statement.name) + "_" + std::to_string(++last_prepared_);
    const char* name = known->second.c_str();
    if (is_new && PQsendPrepare(connection_, name, call.statement.sql, 0, nullptr) != 1) return false;
    std::vector<const char*> values;
    std::vector<int> lengths;
    for (const auto& value : call.arguments.values()) {
      values.push_back(value ? value->data() : nullptr);
      lengths.push_back(value ? static_cast<int>(value->size()) : 0);
    }
    const std::vector<int> formats(values.size(), 1);
    if (PQsendQueryPrepared(connection_, name, static_cast<int>(values.size()), values.data(), lengths.data(),
                            formats.data(), 1) != 1)
      return false;
  }
  return PQpipelineSync(connection_) == 1;
}

// The next result, or null where one statement's results end.
std::expected<pg_result*, Trouble> Connection::next_result(std::stop_token stop) {
  for (;;) {
    const int unsent = PQflush(connection_);
    if (unsent < 0) return std::unexpected(broken(true));
    if (unsent == 0 && PQisBusy(connection_) == 0) return PQgetResult(connection_);
    switch (wait(unsent == 1, time_left())) {
      case Woken::stopped:
        if (stop.stop_requested()) cancel();
        break;
      case Woken::timeout:
        if (cancelled_)
          return std::unexpected(
              Trouble{.message = "the database does not end a cancelled call", .sent = true});
        // Or it would go on waiting there, with all its locks, after we have gone; and the next one likewise.
        cancel();
        return std::unexpected(Trouble{.message = "the database did not answer in time", .sent = true});
      case Woken::readable:
        // What came before the end is still to be read.
        if (PQconsumeInput(connection_) != 1 && PQisBusy(connection_) != 0)
          return std::unexpected(broken(true));
        if (PQstatus(connection_) != CONNECTION_OK) return PQgetResult(connection_);
    }
  }
}

// One statement's result, which an end follows.
std::expected<Rows, Trouble> Connection::take(std::stop_token stop) {
  auto result = next_result(stop);
  if (!result) return std::unexpected(result.error());
  if (!*result) return std::unexpected(broken(true));
  Rows rows(*result);
  // A server that goes down says why before it hangs up, and that is the better word.
  auto end = next_result(stop);
  if (!end) return std::unexpected(is_success(*result) ? end.error() : trouble_of(*result));
  const Rows clears_it(*end);  // that it hung up is a result in place of the end
  return rows;
}

// The end of the transaction. Its commit is part of it: what goes wrong with that is a result of its own,
// with an end, and comes before.
std::expected<void, Trouble> Connection::take_sync(std::stop_token stop) {
  std::optional<Trouble> trouble;
  for (bool has_ended = false;;) {
    auto result = next_result(stop);
    if (!result) return std::unexpected(trouble.value_or(result.error()));
    const Rows clears_it(*result);
    const bool is_end = *result == nullptr;
    if (!is_end && PQresultStatus(*result) == PGRES_PIPELINE_SYNC) break;
    if (!is_end && !trouble) trouble = trouble_of(*result);
    if (PQstatus(connection_) != CONNECTION_OK || (is_end && has_ended))
      return std::unexpected(trouble.value_or(broken(true)));
    has_ended = is_end;
  }
  PQexitPipelineMode(connection_);
  if (trouble) return std::unexpected(*trouble);
  return {};
}

std::expected<std::vector<Rows>, Trouble> Connection::receive(std::span<const Call> calls,
                                                              std::stop_token stop) {
  std::vector<Rows> all;
  std::optional<Trouble> trouble;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (preparing_[i]) {
      auto prepared = take(stop);
      if (!prepared) return std::unexpected(prepared.error());
      if (!is_success(prepared->get())) prepared_.erase(calls[i].statement.sql);
      if (!is_success(prepared->get()) && !trouble) trouble = trouble_of(prepared->get());
    }
    auto rows = take(stop);
    if (!rows) return std::unexpected(rows.error());
    // After the first failure the others of the transaction are skipped.
    if (!is_success(rows->get()) && !trouble) {
      trouble = trouble_of(rows->get());
      trouble->is_outdated = !preparing_[i] && is_of_what_was_prepared(*trouble);
      if (trouble->is_outdated) prepared_.erase(calls[i].statement.sql);
    }
    all.push_back(std::move(*rows));
  }
  if (auto synced = take_sync(stop); !synced && !trouble) trouble = synced.error();
  if (trouble) return std::unexpected(*trouble);
  return all;
}

// False where replies to a call that was given up would be taken for this one's. A stop of the call before
// may have come after its end.
bool Connection::begin_call() {
  if (cancelled_) return false;
  std::uint64_t drained = 0;
  (void)!::read(stop_event_, &drained, sizeof drained);
  call_until_ = steady_ms() + call_max_.ms;
  return true;
}

void Connection::wake_up() {
  const std::uint64_t one = 1;
  (void)!::write(stop_event_, &one, sizeof one);
}

std::expected<std::vector<Rows>, Trouble> Connection::run(std::span<const Call> calls, std::stop_token stop) {
  if (!begin_call()) return std::unexpected(Trouble{.message = "a call before it was given up"});
  const std::stop_callback on_stop(stop, [this] { wake_up(); });
  if (!send(calls)) return std::unexpected(broken(false));
  return receive(calls, stop);
}

std::expected<void, Trouble> Connection::execute(const std::string& sql, std::stop_token stop) {
  if (!begin_call()) return std::unexpected(Trouble{.message = "a call before it was given up"});
  const std::stop_callback on_stop(stop, [this] { wake_up(); });
  if (PQsendQuery(connection_, sql.c_str()) != 1) return std::unexpected(broken(false));
  std::optional<Trouble> trouble;
  for (;;) {
    auto result = next_result(stop);
    if (!result) return std::unexpected(result.error());
    if (!*result) break;
    Rows rows(*result);
    if (!is_success(*result) && !trouble) trouble = trouble_of(*result);
  }
  if (trouble) return std::unexpected(*trouble);
  return {};
}

std::expected<bool, Trouble> Connection::wait_for_notification(
    Duration at_most, std::stop_token stop, const std::function<bool(std::string_view)>& wanted) {
  if (!begin_call()) return std::unexpected(Trouble{.message = "a call before it was given up"});
  const std::stop_callback on_stop(stop, [this] { wake_up(); });
  bool found = false;
  const std::int64_t until = steady_ms() + at_most.ms;
  for (Woken woken = Woken::readable; !found && woken == Woken::readable;) {
    if (PQconsumeInput(connection_) != 1) return std::unexpected(broken(false));
    while (PGnotify* news = PQnotifies(connection_)) {
      found = found || wanted(news->extra);
      PQfreemem(news);
    }
    if (!found) woken = wait(false, std::max<std::int64_t>(until - steady_ms(), 0));
  }
  return found;
}

}  // namespace baton::postgres
