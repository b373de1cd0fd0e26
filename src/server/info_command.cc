// INFO: how the server is doing, as the text that Redis tools read.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/query.h"
#include "server/arguments.h"
#include "server/figures.h"
#include "server/redis_command.h"

namespace baton::server {
namespace {

// What tools that choose their commands by version should take us for.
constexpr std::string_view kRedisVersion = "7.0.0";

class Text {
 public:
  explicit Text(std::span<const std::string> wanted) : wanted_(wanted) {}

  // Whether what follows is wanted.
  bool section(std::string_view name) {
    const auto names_it = [&](const std::string& word) {
      return same_word(word, name) || same_word(word, "all") || same_word(word, "everything") ||
             same_word(word, "default");
    };
    if (!wanted_.empty() && std::ranges::none_of(wanted_, names_it)) return false;
    fmt::format_to(std::back_inserter(out_), "{}# {}\r\n", out_.empty() ? "" : "\r\n", name);
    return true;
  }
  template <class Value>
  void line(std::string_view name, const Value& value) {
    fmt::format_to(std::back_inserter(out_), "{}:{}\r\n", name, value);
  }
  const std::string& text() const { return out_; }

 private:
  std::span<const std::string> wanted_;
  std::string out_;
};

void put_figures(Text& text, const Figures& figures, std::uint16_t http_port) {
  if (text.section("Server")) {
    text.line("redis_version", kRedisVersion);
    text.line("redis_mode", "standalone");
    text.line("baton_version", BATON_VERSION);
    text.line("process_id", ::getpid());
    text.line("http_port", http_port);
    text.line("uptime_in_seconds", figures.uptime.ms / 1000);
    text.line("epoch", figures.epoch);
  }
  if (text.section("Clients")) {
    text.line("connected_clients", figures.connections_resp);
    text.line("connected_http_clients", figures.connections_http);
    text.line("workers", figures.workers);
  }
  if (text.section("Memory")) text.line("used_memory_rss", figures.memory_bytes);
  if (text.section("Persistence")) {
    text.line("loading", 0);
    text.line("last_lsn", figures.last_lsn);
    text.line("durable_lag", figures.durable_lag);
    text.line("flushes", figures.flushes);
    text.line("flush_p50_us", figures.flush_p50_us);
    text.line("flush_p99_us", figures.flush_p99_us);
    text.line("recovery_ms", figures.recovery_took.ms);
  }
  if (text.section("Stats")) {
    text.line("total_connections_received", figures.connections_total);
    text.line("total_commands_processed", figures.commands);
    text.line("total_error_replies", figures.refusals);
    text.line("leases", figures.leases);
  }
  if (text.section("Replication")) text.line("role", "master");
}

class InfoOperation final : public Operation {
 public:
  // Without a namespace nothing is said of queues.
  InfoOperation(std::vector<std::string> sections, std::optional<std::string> ns)
      : sections_(std::move(sections)), ns_(std::move(ns)) {}

  void begin(Desk& desk) override {
    figures_ = figures(desk.authority(), desk.counters);
    http_port_ = desk.http_port;
    desk.look(*this);
  }
  void look(engine::Engine& engine) override {
    if (ns_) page_ = core::queues(engine.state(), {.ns = *ns_, .now = engine.now()});
  }
  std::size_t weight() const override { return 512; }  // a page of queues
  void write(ReplyWriter& reply) override {
    Text text(sections_);
    put_figures(text, figures_, http_port_);
    if (ns_ && text.section("Keyspace")) {
      for (const core::QueueView& queue : page_.queues) {
        std::string counts = fmt::format("paused={},delayed={}", queue.paused ? 1 : 0, queue.delayed);
        for (std::size_t state = 0; state < core::kTaskStates; ++state)
          fmt::format_to(std::back_inserter(counts), ",{}={}",
                         core::name_of(static_cast<core::TaskState>(state)), queue.counts[state]);
        text.line("queue_" + queue.name, counts);
      }
    }
    reply.text(text.text());
  }

 private:
  const std::vector<std::string> sections_;
  const std::optional<std::string> ns_;
  Figures figures_;
  std::uint16_t http_port_ = 0;
  core::QueuePage page_;
};

}  // namespace

std::unique_ptr<Operation> run_info(const RedisCall& call) {
  const Caller& caller = call.caller;
  if (!caller.principal) {
    call.reply().error("NOAUTH", "say who you are first: AUTH token, or AUTH name token");
    return {};
  }
  std::vector<std::string> sections(call.words.begin() + 1, call.words.end());
  std::optional<std::string> ns;
  if (caller.principal->may(Permission::query, caller.ns)) ns = caller.ns;
  return std::make_unique<InfoOperation>(std::move(sections), std::move(ns));
}

}  // namespace baton::server
