// A client of a coordinator: any number of threads, any number of calls under way, one connection, and
// further ones for calls that wait on purpose.
//
//   baton::client::Client client({.addresses = {"127.0.0.1:7077"}});
//   auto task = client.submit({.queue = "mail", .payload = "hello", .key = "greet-alice"});
//
// Each call has a form that blocks, and one that takes a callback, which is called once, on the client's own
// thread; it must neither block nor throw there. A call ends by its deadline, which bounds all there is to
// it: waiting for room among the calls under way, connecting, sending it, sending it again over other
// connections, and the answer. Only what it waits for on purpose (`wait`) comes on top. Then:
//
//   UNAVAILABLE        no coordinator could be reached      nothing happened
//   DEADLINE_EXCEEDED  it was not sent in time              nothing happened
//   OUTCOME_UNKNOWN    it was sent, and no answer came      it may have happened or not
//
// When a connection breaks, what may be repeated without harm is repeated on the next one: every query, a
// submission or requeue with a key, and all that is said under a lease. The rest (a submission without a key,
// a lease, a purge) ends with OUTCOME_UNKNOWN. What a coordinator that stops has refused (CLOSED) was not
// taken, and is said again to the next one, whatever it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "client/types.h"

namespace baton::wire {
struct RespValue;
}

namespace baton::client {

class Command;

// The coordinator has to show a certificate for the host it was called by.
struct TlsOptions {
  std::string ca;           // a PEM file: who may have signed it; empty: whom the system trusts
  std::string certificate;  // one with the chain behind it, and its key: for a coordinator that asks for ours
  std::string key;
};

struct ClientOptions {
  std::vector<std::string> addresses = {"127.0.0.1:7077"};  // HOST:PORT, tried in turn
  std::string user;                                         // with a token: who we are
  std::string token;
  std::optional<TlsOptions> tls;
  std::string ns;                         // namespace; empty: the coordinator's default
  Duration deadline = seconds(30);        // of a call that names none: for all of it, as said above
  Duration connect_timeout = seconds(5);  // for each address, and for being let in there
  Duration silence_max = seconds(10);     // an answer is due, and nothing came: the connection is dead
  Duration backoff_min = milliseconds(50);
  Duration backoff_max = seconds(5);
  std::size_t calls_max = 65'536;                        // under way; whoever wants more waits
  std::size_t bytes_max = std::size_t{256} << 20;        // of them
  std::size_t reply_bytes_max = std::size_t{1} << 30;    // of one reply
  std::size_t command_bytes_max = std::size_t{4} << 20;  // of one call; the coordinator's limit
  std::size_t waiting_connections_max = 64;              // one for each call that waits on purpose
  // Told of connections that break and are made again; may be empty. On the client's own thread, so it must
  // not block.
  std::function<void(const ConnectionNews&)> news;
};

template <class T>
using Callback = std::function<void(Result<T>)>;

class Client {
 public:
  // Connects when there is something to say. An address that makes no sense fails every call.
  explicit Client(const ClientOptions& options);
  // Calls under way end with CLOSED, or with OUTCOME_UNKNOWN if they were sent.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // A deadline is a duration from now; zero is that of the options. The blocking forms are refused in a
  // callback.
  Result<Submitted> submit(const Submit& request, Duration deadline = {});
  Result<std::vector<Result<Submitted>>> submit_many(const SubmitMany& request, Duration deadline = {});
  Result<std::vector<Leased>> lease(const Lease& request, Duration deadline = {});
  // Once it is stopped it is withdrawn, and ends with CLOSED, or with the tasks that had been granted by
  // then.
  Result<std::vector<Leased>> lease(const Lease& request, std::stop_token stop, Duration deadline = {});
  Result<Duration> extend(const Held& held, Duration ttl, Duration deadline = {});  // how long it is held now
  Result<std::vector<Result<Duration>>> extend_many(const std::vector<Held>& held, Duration ttl,
                                                    Duration deadline = {});  // 512 at most
  Result<Verdict> complete(const Held& held, const std::string& result, Duration deadline = {});
  Result<Next> complete_and_lease(const Held& held, const std::string& result, const Lease& lease,
                                  Duration deadline = {});  // one task at most
  Result<Verdict> fail(const Held& held, const Failure& failed, Duration deadline = {});
  Result<Verdict> release(const Held& held, Duration deadline = {});
  // A task is named by its id, or by "key:" and its key.
  Status cancel(const std::string& task, const std::string& actor = {}, const std::string& note = {},
                Duration deadline = {});
  Result<Submitted> requeue(const std::string& task, const std::string& key = {}, Duration deadline = {});
  Result<Task> get(const std::string& task, Duration deadline = {});
  Result<Task> wait(const std::string& task, Duration wait, Duration deadline = {});  // for its end
  Result<TaskPage> tasks(const TaskQuery& query, Duration deadline = {});
  Result<QueuePage> queues(const QueueQuery& query = {}, Duration deadline = {});
  Result<WorkerPage> workers(const WorkerQuery& query = {}, Duration deadline = {});
  Result<Stats> stats(Duration deadline = {});
  Result<std::uint64_t> heartbeat(const Heartbeat& heartbeat, Duration deadline = {});  // leases it holds
  Status pause(const std::string& queue, Duration deadline = {});
  Status resume(const std::string& queue, Duration deadline = {});
  Result<std::uint64_t> purge(const std::string& queue, std::uint32_t count = 1024, Duration deadline = {});

  // What has no form of its own here and may be said twice, as its words; the reply is as it came
  // (wire/resp_value.h).
  Result<wire::RespValue> ask(const std::vector<std::string>& words, Duration deadline = {});
  // Likewise of verbs that wait on purpose, for as long as `wait`, which is added to the words.
  Result<wire::RespValue> ask_and_wait(const std::vector<std::string>& words, Duration wait,
                                       const std::stop_token& stop = {}, Duration deadline = {});

  void ask(const std::vector<std::string>& words, Callback<wire::RespValue> done, Duration deadline = {});
  void submit(const Submit& request, Callback<Submitted> done, Duration deadline = {});
  void submit_many(const SubmitMany& request, Callback<std::vector<Result<Submitted>>> done,
                   Duration deadline = {});
  void lease(const Lease& request, Callback<std::vector<Leased>> done, Duration deadline = {});
  void extend(const Held& held, Duration ttl, Callback<Duration> done, Duration deadline = {});
  void extend_many(const std::vector<Held>& held, Duration ttl, Callback<std::vector<Result<Duration>>> done,
                   Duration deadline = {});
  void complete(const Held& held, const std::string& result, Callback<Verdict> done, Duration deadline = {});
  void complete_and_lease(const Held& held, const std::string& result, const Lease& lease,
                          Callback<Next> done, Duration deadline = {});
  void fail(const Held& held, const Failure& failed, Callback<Verdict> done, Duration deadline = {});
  void release(const Held& held, Callback<Verdict> done, Duration deadline = {});
  void cancel(const std::string& task, const std::string& actor, const std::string& note, Callback<void> done,
              Duration deadline = {});
  void requeue(const std::string& task, const std::string& key, Callback<Submitted> done,
               Duration deadline = {});
  void get(const std::string& task, Callback<Task> done, Duration deadline = {});
  void wait(const std::string& task, Duration wait, Callback<Task> done, Duration deadline = {});
  void tasks(const TaskQuery& query, Callback<TaskPage> done, Duration deadline = {});
  void queues(const QueueQuery& query, Callback<QueuePage> done, Duration deadline = {});
  void workers(const WorkerQuery& query, Callback<WorkerPage> done, Duration deadline = {});
  void stats(Callback<Stats> done, Duration deadline = {});
  void heartbeat(const Heartbeat& heartbeat, Callback<std::uint64_t> done, Duration deadline = {});
  void pause(const std::string& queue, Callback<void> done, Duration deadline = {});
  void resume(const std::string& queue, Callback<void> done, Duration deadline = {});
  void purge(const std::string& queue, std::uint32_t count, Callback<std::uint64_t> done,
             Duration deadline = {});

  // Whoever wants to know of leases that the coordinator says were lost, as soon as it says so. Called on the
  // client's own thread; must not block there, nor listen or stop listening.
  std::uint64_t listen(std::function<void(const Held&)> lost);
  void stop_listening(std::uint64_t id);  // when it returns, it is called no more

 private:
  friend class WorkCoordinator;
  class Calls;
  // A command that may be repeated, and its reply as it came. The coordinator may wait on purpose.
  Result<wire::RespValue> say(const Command& command, Duration deadline = {});
  void say(const Command& command, Duration wait, Callback<wire::RespValue> done);
  Result<wire::RespValue> say_once(const Command& command);  // one that may not be repeated
  void say_once(const Command& command, Callback<wire::RespValue> done);
  Status may_wait() const;  // not in a callback
  const std::unique_ptr<Calls> calls_;
};

}  // namespace baton::client
