// Streams in the coordinator itself, on PostgreSQL, and the two tables people usually build there, in turn in
// one run, and beside what the disk can do. 300 messages a call, 10 to a stream, payloads of about 400 bytes,
// every commit flushed. Usage: bench_streams [messages per round, default 9000] [rounds, default 5] [backlog,
// default 1000000; 0: leave it out]
//
// A round fills the tables and drains them again, by one instance that completes at once. That is the easiest
// case for a table in which a claim has to step over what it may not have, so they are measured as a service
// finds them too: with 100 000 messages waiting, and eight other instances at work on 300 each.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/work_coordinator.h"
#include "postgres/migrations.h"
#include "postgres/work_coordinator.h"
#include "tests/stream/cluster.h"
#include "tests/temporary_directory.h"

namespace {

using namespace baton;
using namespace baton::stream;
using Clock = std::chrono::steady_clock;

constexpr unsigned kPerCall = 300;
constexpr unsigned kPerStream = 10;
constexpr unsigned kWaiting = 100'000;
constexpr unsigned kOthers = 8;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <class T>
T expect(Result<T> result) {
  if (!result) std::fprintf(stderr, "%s\n", result.error().message.c_str()), std::exit(1);
  return std::move(*result);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// As version 7 has them: those made later are larger, and the rest is spread.
Uuid time_ordered(std::uint64_t number) {
  Uuid uuid;
  for (unsigned i = 0; i < 8; ++i) uuid.bytes[i] = std::byte(number >> (56 - 8 * i));
  const std::uint64_t spread = number * 0x9e3779b97f4a7c15u;
  for (unsigned i = 0; i < 8; ++i) uuid.bytes[8 + i] = std::byte(spread >> (8 * i));
  return uuid;
}

std::vector<NewMessage> next_messages() {
  static std::uint64_t number = 0;
  const std::string data = "{\"text\": \"" + std::string(400, 'x') + "\"}";
  std::vector<NewMessage> messages;
  for (unsigned i = 0; i < kPerCall; ++i, ++number) {
    messages.push_back({.id = {time_ordered(number + 1)},
                        .stream = StreamId{time_ordered(1 + number / kPerStream)},
                        .target = "somewhere",
                        .type = "Thing",
                        .data = data});
  }
  return messages;
}

// A table as one would write it in an afternoon: a lease on each row, and if order matters, nothing is handed
// out while an earlier row of its stream is there.
class NaiveQueue {
 public:
  NaiveQueue(const std::string& url, bool ordered) : ordered_(ordered) {
    connection_ = std::move(*postgres::Connection::open(url, seconds(5)));
    if (!connection_->execute("create table " + table() +
                              " (id bigserial primary key, message_id uuid, stream_id uuid, body jsonb, "
                              "lease timestamptz, owner uuid);"
                              "create index on " +
                              table() + " (stream_id, id)"))
      std::abort();
    store_ = "insert into " + table() +
             " (message_id, stream_id, body) select * from unnest($1::uuid[], $2::uuid[], $3::jsonb[])";
    claim_ =
        "with picked as (select id from " + table() + " q where (lease is null or lease < now())" +
        (ordered ? " and not exists (select from " + table() +
                       " e where e.stream_id = q.stream_id and e.id < q.id)"
                 : "") +
        " order by id limit 300 for update skip locked) update " + table() +
        " q set lease = now() + interval '5 minutes' from picked p where q.id = p.id returning q.id, q.body";
    complete_ = "delete from " + table() + " where id = any($1::bigint[])";
  }

  void store(const std::vector<NewMessage>& messages) {
    postgres::List ids(postgres::ElementType::uuid, messages.size()),
        streams(postgres::ElementType::uuid, messages.size()),
        bodies(postgres::ElementType::jsonb, messages.size());
    for (const NewMessage& message : messages)
      ids.add(message.id.value), streams.add(message.stream->value), bodies.add_json(message.data);
    run({"naive_store", store_.c_str()},
        std::move(postgres::Arguments().add(std::move(ids)).add(std::move(streams)).add(std::move(bodies))));
  }
  postgres::Rows claim() { return run({"naive_claim", claim_.c_str()}, {}); }
  std::size_t claim_and_complete() {
    const postgres::Rows rows = claim();
    if (rows.size() == 0) return 0;
    postgres::List ids(postgres::ElementType::int8, static_cast<std::size_t>(rows.size()));
    for (int row = 0; row < rows.size(); ++row) ids.add(rows.int8(row, 0));
    run({"naive_complete", complete_.c_str()}, std::move(postgres::Arguments().add(std::move(ids))));
    return static_cast<std::size_t>(rows.size());
  }

 private:
  std::string table() const { return ordered_ ? "naive_ordered" : "naive_unordered"; }
  postgres::Rows run(postgres::Statement statement, postgres::Arguments arguments) {
    const std::vector<postgres::Call> calls{{statement, std::move(arguments)}};
    auto rows = connection_->run(calls, {});
    if (!rows) std::fprintf(stderr, "%s\n", rows.error().message.c_str()), std::exit(1);
    return std::move(rows->front());
  }

  const bool ordered_;
  std::unique_ptr<postgres::Connection> connection_;
  std::string store_, claim_, complete_;
};

struct Figures {
  std::vector<double> store, work;  // messages per second, round by round
};

// One round: so many messages in, and all of them out again.
void play(Figures& figures, unsigned messages,
          const std::function<void(const std::vector<NewMessage>&)>& store,
          const std::function<std::size_t()>& turn) {
  std::vector<std::vector<NewMessage>> calls;
  for (unsigned i = 0; i < messages; i += kPerCall) calls.push_back(next_messages());
  auto start = Clock::now();
  for (const auto& call : calls) store(call);
  figures.store.push_back(static_cast<double>(calls.size() * kPerCall) / since(start));
  start = Clock::now();
  std::size_t done = 0;
  for (std::size_t got = 1; got > 0;) done += got = turn();
  if (done < calls.size() * kPerCall) std::fprintf(stderr, "only %zu were handed out\n", done);
  figures.work.push_back(static_cast<double>(done) / since(start));
}

double flushes_per_second() {
  const std::string path = "bench-flush.tmp";
  const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);
  const std::vector<char> page(8192, 'x');
  int flushes = 0;
  const auto start = Clock::now();
  for (; since(start) < 0.5; ++flushes) {
    if (::pwrite(file, page.data(), page.size(), 0) < 0 || ::fdatasync(file) != 0) std::abort();
  }
  const double rate = flushes / since(start);
  ::close(file);
  ::unlink(path.c_str());
  return rate;
}

void report(const char* name, const Figures& figures) {
  std::printf("%-22s store %8.0f/s   claim + complete %8.0f/s   (medians; %.0f to %.0f)\n", name,
              median(figures.store), median(figures.work), *std::ranges::min_element(figures.work),
              *std::ranges::max_element(figures.work));
}

// The turn of an instance that completes what it was given and asks for more.
class Baton {
 public:
  explicit Baton(std::unique_ptr<WorkCoordinator> coordinator) : coordinator_(std::move(coordinator)) {
    request_.instance = {.id = {time_ordered(1)}, .service = "bench", .host = "here", .process = 1};
    expect(coordinator_->process_work_batch(request_));
  }
  void store(const std::vector<NewMessage>& messages) {
    expect(coordinator_->store(request_.instance.id, Lane::inbox, messages));
  }
  void arrive(unsigned others) {
    for (unsigned i = 2; i < 2 + others; ++i) expect(coordinator_->heartbeat(other(i)));
  }
  // As many others take what belongs to them, and keep it.
  void let_hold(unsigned others) {
    for (unsigned i = 2; i < 2 + others; ++i) expect(coordinator_->claim(other(i).id));
  }
  std::size_t turn() {
    const WorkBatch batch = expect(coordinator_->process_work_batch(request_));
    request_.inbox_completions.clear();
    for (const Work& work : batch.work) {
      request_.inbox_completions.push_back({.held = work.held(), .status = MessageStatus::event_stored});
    }
    return batch.work.size();
  }
  double turn_ms() {
    const auto start = Clock::now();
    turn();
    return since(start) * 1e3;
  }

 private:
  static Instance other(unsigned number) {
    return {.id = {time_ordered(number)}, .service = "bench", .host = "here", .process = 1};
  }

  std::unique_ptr<WorkCoordinator> coordinator_;
  WorkBatchRequest request_;
};

// Messages per second of one instance among others, with a lot waiting.
double under_load(const std::function<void(const std::vector<NewMessage>&)>& store,
                  const std::function<void()>& let_others_hold, const std::function<std::size_t()>& turn) {
  for (unsigned stored = 0; stored < kWaiting; stored += kPerCall) store(next_messages());
  let_others_hold();
  std::vector<double> rates;
  for (int i = 0; i < 20; ++i) {
    const auto start = Clock::now();
    const auto done = static_cast<double>(turn());
    rates.push_back(done / since(start));
  }
  return median(rates);
}

void measure_under_load(const std::string& url) {
  expect(postgres::migrate(url));
  // So much has waited for longer than streams are offered to one instance only.
  (*postgres::Connection::open(url, seconds(5)))
      ->execute("update wh_settings set setting_value = 0 where setting_key = 'steal_after_seconds'")
      .value();
  Baton baton(std::make_unique<postgres::WorkCoordinator>(postgres::DatabaseOptions{.url = url}));
  NaiveQueue ordered(url, true), unordered(url, false);
  const auto stores = [](auto& queue) { return [&](const auto& call) { queue.store(call); }; };
  const auto holds = [](NaiveQueue& queue) {
    return [&] {
      for (unsigned i = 0; i < kOthers; ++i) queue.claim();
    };
  };
  const auto turns = [](NaiveQueue& queue) { return [&] { return queue.claim_and_complete(); }; };
  baton.arrive(kOthers);
  const double ours =
      under_load(stores(baton), [&] { baton.let_hold(kOthers); }, [&] { return baton.turn(); });
  const double in_order = under_load(stores(ordered), holds(ordered), turns(ordered));
  const double any_order = under_load(stores(unordered), holds(unordered), turns(unordered));
  std::printf(
      "with %u waiting and %u others at work: claim + complete %.0f/s, naive ordered %.0f/s (%.1f x), naive "
      "without order %.0f/s (%.1f x)\n",
      kWaiting, kOthers, ours, in_order, ours / in_order, any_order, ours / any_order);
}

void measure_backlog(Baton& baton, unsigned backlog) {
  std::map<unsigned, double> latency;
  unsigned stored = 0;
  constexpr unsigned kTurns = 30;
  for (const unsigned goal : {10'000u, backlog}) {
    for (; stored < goal; stored += kPerCall) baton.store(next_messages());
    std::vector<double> turns;
    // Many, for each waits for one flush or two, and the disk takes longer than the database.
    for (unsigned i = 0; i < kTurns; ++i, stored -= kPerCall) turns.push_back(baton.turn_ms());
    latency[goal] = median(turns);
    std::printf("claim and complete 300 with %u waiting: p50 %.2f ms\n", goal, latency[goal]);
  }
  std::printf("over that with 10000: %.2f\n", latency[backlog] / latency[10'000]);
}

}  // namespace

int main(int argc, char** argv) {
  const auto messages = static_cast<unsigned>(argc > 1 ? std::atoi(argv[1]) : 9000);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const auto backlog = static_cast<unsigned>(argc > 3 ? std::atoi(argv[3]) : 1'000'000);
  if (!Cluster::programs()) {
    std::puts("PostgreSQL 15 or later is not installed (Debian: postgresql)");
    return 1;
  }
  Cluster cluster(Cluster::Flushes::on);
  const std::string url = cluster.create("bench");
  expect(postgres::migrate(url));
  Baton baton(std::make_unique<postgres::WorkCoordinator>(postgres::DatabaseOptions{.url = url}));
  TemporaryDirectory directory;
  const auto coordinator = expect(Coordinator::open(directory.path()));
  Baton embedded(std::make_unique<engine::WorkCoordinator>(*coordinator));
  NaiveQueue ordered(url, true), unordered(url, false);
  Figures ours, alone, naive_ordered, naive_unordered;
  std::vector<double> flushes;
  for (int round = 0; round < rounds; ++round) {
    play(ours, messages, [&](const auto& call) { baton.store(call); }, [&] { return baton.turn(); });
    play(alone, messages, [&](const auto& call) { embedded.store(call); }, [&] { return embedded.turn(); });
    play(
        naive_ordered, messages, [&](const auto& call) { ordered.store(call); },
        [&] { return ordered.claim_and_complete(); });
    play(
        naive_unordered, messages, [&](const auto& call) { unordered.store(call); },
        [&] { return unordered.claim_and_complete(); });
    flushes.push_back(flushes_per_second());
  }
  report("baton, embedded", alone);
  report("baton, PostgreSQL", ours);
  report("naive, ordered", naive_ordered);
  report("naive, no order", naive_unordered);
  std::printf("claim + complete over ordered %.1f, over unordered %.1f; raw write + fdatasync %.0f/s\n",
              median(ours.work) / median(naive_ordered.work),
              median(ours.work) / median(naive_unordered.work), median(flushes));
  std::printf("embedded over PostgreSQL: store %.1f, claim + complete %.1f\n",
              median(alone.store) / median(ours.store), median(alone.work) / median(ours.work));
  measure_under_load(cluster.create("loaded"));
  for (auto& [name, one] : {std::pair<const char*, Baton&>("embedded", embedded), {"PostgreSQL", baton}}) {
    std::vector<double> empty;
    for (int i = 0; i < 1000; ++i) empty.push_back(one.turn_ms());
    std::printf("%s: a call without work: p50 %.3f ms\n", name, median(empty));
    if (backlog > 0) measure_backlog(one, backlog);
  }
}
