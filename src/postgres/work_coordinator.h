// Work coordination on PostgreSQL: the rules are functions in the database (sql/), this calls them.
//
// One connection, made when there is something to say and made again when it breaks; threads take turns.
// Deadlocks and the like are tried again. A second connection is made for whoever waits for work.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string>

#include "postgres/connection.h"
#include "stream/work_coordinator.h"

namespace baton::postgres {

struct DatabaseOptions {
  std::string url;                        // as libpq takes it: a URL, or key=value pairs
  Duration connect_timeout = seconds(5);  // for each attempt
  Duration give_up_after = seconds(10);   // of connecting
  Duration call_max = seconds(60);        // then the outcome of a call is unknown; zero: no matter how long
  Duration backoff_min = milliseconds(50);
  Duration backoff_max = seconds(2);
  // By whoever waits for work, unless another instance has done it meanwhile; zero: never.
  Duration maintain_every = minutes(1);
  // How long a handler's transaction (postgres/transaction.h) may stand still before the database undoes it,
  // for it may hold locks; zero: no matter how long.
  Duration transaction_idle_max = minutes(5);
  int tries = 6;  // of a call that other calls were in the way of
};

class WorkCoordinator final : public stream::WorkCoordinator {
 public:
  explicit WorkCoordinator(DatabaseOptions options);

 private:
  Result<stream::WorkBatch> do_process_work_batch(const stream::WorkBatchRequest& request,
                                                  std::stop_token stop) override;
  Result<stream::Standing> do_heartbeat(const stream::Instance& instance, Duration stale,
                                        std::stop_token stop) override;
  Result<std::vector<stream::Verdict>> do_store(stream::InstanceId instance, stream::Lane lane,
                                                const std::vector<stream::NewMessage>& messages,
                                                std::int32_t partitions, std::stop_token stop) override;
  Result<std::vector<stream::Work>> do_claim(stream::InstanceId instance, const stream::ClaimRequest& request,
                                             std::stop_token stop) override;
  Result<std::vector<stream::Verdict>> do_complete(stream::InstanceId instance, stream::Lane lane,
                                                   const std::vector<stream::Completion>& completions,
                                                   stream::WorkFlags flags, std::stop_token stop) override;
  Result<std::vector<stream::Verdict>> do_fail(stream::InstanceId instance, stream::Lane lane,
                                               const std::vector<stream::Failure>& failures,
                                               std::stop_token stop) override;
  Result<std::vector<stream::Verdict>> do_renew(stream::InstanceId instance, stream::Lane lane,
                                                const std::vector<stream::Held>& held, Duration lease,
                                                std::stop_token stop) override;
  Result<std::vector<stream::Verdict>> do_release(stream::InstanceId instance, stream::Lane lane,
                                                  const std::vector<stream::Held>& held,
                                                  std::stop_token stop) override;
  Result<std::vector<stream::Work>> do_resume(stream::InstanceId instance, std::stop_token stop) override;
  Result<bool> do_wait_for_work(Duration at_most, std::stop_token stop) override;
  Status do_leave(stream::InstanceId instance, std::stop_token stop) override;

  // A connection that is made when it is needed. It is used by whoever has the turn.
  struct Line {
    std::mutex mutex;
    std::condition_variable_any freed;
    bool is_taken = false;
    std::unique_ptr<Connection> connection;
    std::minstd_rand dice{std::random_device()()};
  };
  class Turn;

  Result<std::vector<Rows>> run(std::span<const Call> calls, std::stop_token stop);
  Result<std::vector<stream::Verdict>> verdicts(const Call& call, std::size_t count, std::stop_token stop);
  void speaks_for(const std::string& service);
  Status connect(Line& line, const char* greeting, std::stop_token stop);
  bool maintain_if_due(const std::stop_token& stop);  // in a turn of news_

  const DatabaseOptions options_;
  Line calls_;
  Line news_;
  Duration maintained_;              // on the steady clock, in a turn of news_
  bool has_more_to_forget_ = false;  // likewise: the last time was not enough
  std::mutex services_mutex_;
  std::set<std::string, std::less<>> services_;  // of the instances that speak through this one
};

}  // namespace baton::postgres
