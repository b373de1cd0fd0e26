#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "tests/chaos/caller.h"
#include "wire/resp_value.h"

namespace baton::chaos {
namespace {

using wire::RespValue;

class BareCaller final : public Caller {
 public:
  explicit BareCaller(std::uint16_t port) : port_(port) {}
  ~BareCaller() override { hang_up(); }
  BareCaller(const BareCaller&) = delete;
  BareCaller& operator=(const BareCaller&) = delete;

  Operation submit(const std::string& key) override { return submit_all({key}, 0).front(); }
  std::vector<Operation> submit_all(const std::vector<std::string>& keys) override {
    return submit_all(keys, kFillers);
  }

  Operation lease(const std::string& worker, Duration ttl, client::Held& held) override {
    RespValue reply;
    Operation o = call({"LEASE", worker, kQueue, "TTL_MS", std::to_string(ttl.ms), "WAIT_MS", "100"}, reply);
    o.kind = Kind::lease, o.ttl_us = ttl.ms * 1000;
    held = {};
    const RespValue* tasks = reply.find("tasks");
    if (o.outcome != Outcome::done || tasks == nullptr || tasks->items.empty()) return o;
    const RespValue& grant = tasks->items[0];
    held = {text(grant, "task"), text(grant, "lease")};
    name(o, held);
    if (const RespValue* attempt = grant.find("attempt"))
      o.attempt = static_cast<std::uint32_t>(attempt->number);
    return o;
  }

  Operation extend(const client::Held& held, Duration ttl) override {
    RespValue reply;
    Operation o = call({"EXTEND", held.task, held.lease, "TTL_MS", std::to_string(ttl.ms)}, reply);
    o.kind = Kind::extend, o.ttl_us = ttl.ms * 1000;
    if (o.outcome == Outcome::done) o.word = "extended";
    return name(o, held);
  }
  Operation complete(const client::Held& held) override {
    return settle(Kind::complete, held, {"COMPLETE", held.task, held.lease, "RESULT", "done"});
  }
  Operation fail(const client::Held& held) override {
    return settle(Kind::fail, held, {"FAIL", held.task, held.lease, "REASON", "as it happens"});
  }

  Operation get(const std::string& key) override {
    RespValue reply;
    Operation o = call({"GET", "key:" + key}, reply);
    o.kind = Kind::get, o.key = key;
    const RespValue* task = reply.find("task");
    if (o.outcome != Outcome::done || task == nullptr) return o;
    o.word = text(*task, "state"), o.task = lsn_of(text(*task, "task"));
    return o;
  }

 private:
  std::vector<Operation> submit_all(const std::vector<std::string>& keys, std::size_t fillers) {
    const std::string filler = command({"EXTEND", kNobodys.task, kNobodys.lease});
    std::string all;
    for (const std::string& key : keys) {
      for (std::size_t count = 0; count < fillers; ++count) all += filler;
      all += command({"SUBMIT", kQueue, "payload of " + key, "KEY", key, "MAX_FAILURES", "1000",
                      "MAX_ATTEMPTS", "100000", "BACKOFF_MS", "5", "BACKOFF_MAX_MS", "20"});
    }
    const bool is_there = socket_ >= 0 || connect();
    bool is_heard = is_there && say(all);
    std::vector<Operation> said;
    for (const std::string& key : keys) {
      RespValue reply;
      for (std::size_t count = 0; count <= fillers; ++count) is_heard = is_heard && hear(reply);
      Operation o = !is_there ? Operation{.outcome = Outcome::absent} : outcome_of(is_heard, reply);
      o.kind = Kind::submit, o.key = key, o.returned_us = now_us();
      if (o.outcome == Outcome::done) {
        o.task = lsn_of(text(reply, "task"));
        const RespValue* existed = reply.find("existed");
        o.existed = existed != nullptr && (existed->truth || existed->number != 0);
      }
      said.push_back(std::move(o));
    }
    return said;
  }

  static std::string text(const RespValue& value, const char* name) {
    const RespValue* member = value.find(name);
    return member != nullptr ? member->text : "";
  }
  static Operation& name(Operation& o, const client::Held& held) {
    o.task = lsn_of(held.task), o.lease = lsn_of(held.lease);
    return o;
  }

  Operation settle(Kind kind, const client::Held& held, const std::vector<std::string>& words) {
    RespValue reply;
    Operation o = call(words, reply);
    o.kind = kind;
    if (o.outcome == Outcome::done) o.word = text(reply, "status");
    return name(o, held);
  }

  // Says it, and hears the answer. Whatever is not answered in time was heard by a server or not.
  Operation call(const std::vector<std::string>& words, RespValue& reply) {
    if (socket_ < 0 && !connect()) return {.outcome = Outcome::absent};
    const bool is_heard = say(command(words)) && hear(reply);
    return outcome_of(is_heard, reply);
  }

  Operation outcome_of(bool is_heard, const RespValue& reply) {
    Operation o;
    if (!is_heard) {
      hang_up();
      o.outcome = Outcome::unknown;
      return o;
    }
    if (reply.type == RespValue::Type::error) {
      o.word = reply.text.substr(0, reply.text.find(' '));
      // All but these say that nothing was changed, whoever holds the task.
      const bool is_lost = o.word == "LEASE_LOST" || o.word == "LEASE_UNKNOWN" || o.word == "CONFLICT";
      o.outcome = is_lost ? Outcome::refused : Outcome::absent;
      return o;
    }
    o.outcome = Outcome::done;
    if (const RespValue* lsn = reply.find("lsn")) o.lsn = static_cast<Lsn>(lsn->number);
    return o;
  }

  static std::string command(const std::vector<std::string>& words) {
    std::string out = fmt::format("*{}\r\n", words.size());
    for (const std::string& word : words) out += fmt::format("${}\r\n{}\r\n", word.size(), word);
    return out;
  }
  bool say(const std::string& text) {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  bool hear(RespValue& reply) {
    wire::RespValueParser parser;
    for (char bytes[4096];;) {
      std::string_view rest = input_;
      const auto found = parser.parse(rest);
      input_.erase(0, input_.size() - rest.size());
      if (found == wire::RespValueParser::Found::value) {
        reply = parser.take();
        return true;
      }
      const ssize_t count =
          found == wire::RespValueParser::Found::broken ? 0 : ::recv(socket_, bytes, sizeof bytes, 0);
      if (count <= 0) return false;
      input_.append(bytes, static_cast<std::size_t>(count));
    }
  }

  bool connect() {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return false;
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = ::htons(port_), .sin_addr = {::htonl(INADDR_LOOPBACK)}};
    const timeval patience{kPatience.ms / 1000, kPatience.ms % 1000 * 1000};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
    hang_up();
    return false;
  }
  void hang_up() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
    input_.clear();
  }

  const std::uint16_t port_;
  int socket_ = -1;
  std::string input_;  // heard, and not yet understood
};

}  // namespace

std::unique_ptr<Caller> bare_caller(std::uint16_t port) { return std::make_unique<BareCaller>(port); }

}  // namespace baton::chaos
