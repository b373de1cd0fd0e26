#include "tests/stream/postgres_backend.h"

#include <atomic>
#include <cstdio>
#include <vector>

#include "base/check.h"
#include "postgres/migrations.h"
#include "postgres/work_coordinator.h"

namespace baton::stream {
namespace {

std::unique_ptr<Cluster> running;
std::atomic<int> databases = 0;

constexpr std::string_view kDeadlock = "40P01";

std::string next_name() { return "test" + std::to_string(++databases); }

class PostgresBackend final : public Backend {
 public:
  std::unique_ptr<WorkCoordinator> connect() override {
    return std::make_unique<postgres::WorkCoordinator>(postgres::DatabaseOptions{.url = url_});
  }
  void let_time_pass(Duration duration) override { age(url_, duration); }
  int replay_dead_letters() override { return std::stoi(ask(url_, "select wh_replay_dead_letters()::text")); }
  int purge_dead_letters() override { return std::stoi(ask(url_, "select wh_purge_dead_letters()::text")); }
  void forget_what_is_past_its_time() override { tell(url_, "select wh_maintain()"); }
  std::vector<std::string> options_of_command() const override { return {"--database", url_}; }

 private:
  // One database for all of them, emptied: that is quicker than a new one.
  static const std::string& emptied_database() {
    static const std::string url = migrated_database();
    tell(url,
         "delete from wh_service_instances; delete from wh_evicted_instances; delete from wh_streams; delete "
         "from wh_messages;"
         "delete from wh_kept_messages; delete from wh_dead_letters; delete from wh_message_deduplication;"
         "delete from wh_event_streams; delete from wh_event_store; delete from wh_receptor_processing;"
         "delete from wh_perspective_checkpoints; delete from wh_perspective_events");
    return url;
  }
  const std::string url_ = emptied_database();
};

}  // namespace

Cluster& cluster() {
  if (!running) running = std::make_unique<Cluster>();
  return *running;
}

void stop_cluster() { running.reset(); }

std::string empty_database() { return cluster().create(next_name()); }

std::string migrated_database() {
  static const bool made = [] { return postgres::migrate(cluster().create("pattern")).has_value(); }();
  BATON_CHECK(made);
  return cluster().create(next_name(), "pattern");
}

std::string user(const std::string& name, const std::string& options) {
  return "do $$ begin create role \"" + name + "\" login " + options +
         "; exception when duplicate_object then null; end $$; ";
}

std::string ask(const std::string& url, const std::string& sql) {
  auto connection = postgres::Connection::open(url, seconds(5));
  BATON_CHECK(connection);
  const std::vector<postgres::Call> calls{{{"ask", sql.c_str()}, {}}};
  auto rows = (*connection)->run(calls, {});
  if (!rows) return rows.error().sqlstate + ": " + rows.error().message;
  return rows->front().size() == 0 ? "" : std::string(rows->front().text(0, 0));
}

void tell(const std::string& url, const std::string& sql) {
  auto connection = postgres::Connection::open(url, seconds(5));
  BATON_CHECK(connection);
  auto told = (*connection)->execute(sql);
  while (!told && told.error().sqlstate == kDeadlock) told = (*connection)->execute(sql);
  if (!told) std::fprintf(stderr, "%s\n", told.error().message.c_str());
  BATON_CHECK(told);
}

void age(const std::string& url, Duration by) {
  const std::string earlier = " - interval '" + std::to_string(by.ms) + " milliseconds'";
  const auto older = [&](const std::string& column) { return column + " = " + column + earlier; };
  // In the order in which a call comes to them, so that the two seldom wait for each other. A call in whose
  // middle time has passed may note once more that its instance is alive.
  tell(url,
       "lock wh_service_instances in exclusive mode; lock wh_streams in exclusive mode; lock wh_messages in "
       "exclusive mode;"
       "update wh_service_instances set " +
           older("last_heartbeat_at") + ";update wh_streams set " + older("lease_until") + ", " +
           older("ready_at") + ", " + older("idle_since") + ";update wh_messages set " +
           older("lease_until") + ", " + older("ready_at") + ", " + older("scheduled_for") + ", " +
           older("stored_at") + ";update wh_message_deduplication set " + older("first_seen_at") +
           ";update wh_evicted_instances set " + older("evicted_at") + ";update wh_kept_messages set " +
           older("processed_at") + ";update wh_maintenance set " + older("done_at"));
}

BackendKind postgres_backend() {
  return {"PostgreSQL", [] { return std::make_unique<PostgresBackend>(); }};
}

}  // namespace baton::stream
