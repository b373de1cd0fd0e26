#include "server/resp_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/resp_reply.h"

namespace baton::server {
namespace {

constexpr std::size_t kUnderWayMax = 4096;                     // commands of one connection
constexpr std::size_t kOutputBytesMax = std::size_t{1} << 20;  // begun no more while this much is unsent

}  // namespace

RespSession::~RespSession() {
  for (const Slot& slot : slots_) {
    if (slot.operation != nullptr) desk_.abandon(*slot.operation);
  }
}

bool RespSession::wants_more() const {
  return !closing_ && !blocked_ && slots_.size() < kUnderWayMax && output_.size() < kOutputBytesMax;
}

// Whole commands are read where they lie; only the beginning of one that is not whole is kept.
void RespSession::receive(std::string_view bytes) {
  if (input_.empty()) {
    input_ = bytes.substr(run_commands(bytes));
  } else {
    input_ += bytes;
    resume();
  }
}

void RespSession::resume() {
  if (input_.empty() || running_) return;
  const std::size_t done = run_commands(input_);
  if (done == input_.size()) {
    std::string().swap(input_);  // an idle connection costs little
  } else {
    input_.erase(0, done);
  }
}

// Returns how many bytes of `input` are done with.
std::size_t RespSession::run_commands(std::string_view input) {
  running_ = true;
  std::size_t done = 0;
  while (wants_more()) {
    const auto found = parser_.parse(input.substr(done));
    if (found == wire::RespParser::Found::nothing) break;
    if (found == wire::RespParser::Found::broken) {
      std::string text;
      wire::RespWriter(text, version_).error("PROTOCOL_ERROR", parser_.complaint());
      closing_ = true;
      put(std::move(text));
      break;
    }
    if (!parser_.arguments().empty()) run(parser_.arguments());
    done += parser_.consumed();
  }
  running_ = false;
  return done;
}

void RespSession::run(const std::vector<std::string_view>& words) {
  const Verb* verb = find_verb(words[0]);
  std::string text;
  wire::RespWriter reply(text, version_);
  if (verb == nullptr) {
    if (!run_own(words, text))
      reply.error("UNKNOWN_COMMAND",
                  fmt::format("there is no command '{:.40}'; COMMAND lists them", words[0]));
    return put(std::move(text));
  }
  if (!may(*verb, reply)) return put(std::move(text));
  if (auto read = arguments_.read(verb->parameters, std::span(words).subspan(1)); !read) {
    reply.error(word(read.error().code), read.error().message);
    return put(std::move(text));
  }
  auto operation = verb->make(ns_, arguments_);
  if (arguments_.complaint()) {
    reply.error(word(arguments_.complaint()->code), arguments_.complaint()->message);
    return put(std::move(text));
  }
  ++desk_.counters.commands[verb->name];
  blocked_ = operation->is_blocking();
  slots_.push_back({.operation = operation.get()});
  desk_.accept(std::move(operation), *this);
}

bool RespSession::may(const Verb& verb, wire::RespWriter& reply) const {
  if (!principal_) {
    reply.error("NOAUTH", "say who you are first: AUTH token, or AUTH name token");
  } else if (!principal_->may(verb.permission, ns_)) {
    reply.error("NOPERM", fmt::format("'{}' may not {} in namespace '{}'", principal_->name(),
                                      name_of(verb.permission), ns_));
  } else {
    return true;
  }
  return false;
}

bool RespSession::authenticate(std::span<const std::string_view> name_and_token, wire::RespWriter& reply) {
  if (!access_.needs_token()) return true;
  // Redis clients that have only a token send it alone, or under the name "default".
  std::string_view name = name_and_token.size() > 1 ? name_and_token[0] : "";
  if (name == "default") name = "";
  if (auto found = access_.find(name, name_and_token.back())) {
    principal_ = std::move(found);
    return true;
  }
  ++desk_.counters.rejections["WRONGPASS"];
  reply.error("WRONGPASS", "no such name and token");
  return false;
}

// Commands about the connection itself, and what ordinary Redis clients expect of a server.
bool RespSession::run_own(const std::vector<std::string_view>& words, std::string& text) {
  const std::string_view name = words[0];
  wire::RespWriter reply(text, version_);
  if (same_word(name, "ping")) {
    words.size() > 1 ? reply.bulk(words[1]) : reply.simple("PONG");
  } else if (same_word(name, "hello")) {
    hello(words, text);
  } else if (same_word(name, "auth")) {
    if (words.size() != 2 && words.size() != 3) {
      reply.error("INVALID_REQUEST", "AUTH needs a token, or a name and a token");
    } else if (authenticate(std::span(words).subspan(1), reply)) {
      reply.simple("OK");
    }
  } else if (same_word(name, "quit")) {
    reply.simple("OK");
    closing_ = true;
  } else if (same_word(name, "select") || same_word(name, "client")) {
    reply.simple("OK");
  } else if (same_word(name, "use")) {
    if (words.size() != 2 || !core::is_name(words[1])) {
      reply.error("INVALID_REQUEST", "USE needs a namespace: 1 to 128 graphic ASCII characters");
    } else {
      ns_ = words[1];
      reply.simple("OK");
    }
  } else if (same_word(name, "command") || same_word(name, "config")) {
    reply.array(0);
  } else {
    return false;
  }
  return true;
}

void RespSession::hello(const std::vector<std::string_view>& words, std::string& text) {
  const bool known = words.size() < 2 || words[1] == "2" || words[1] == "3";
  if (words.size() > 1 && known) version_ = words[1] == "3" ? 3 : 2;
  wire::RespWriter reply(text, version_);
  if (!known) return reply.error("NOPROTO", "this server speaks RESP 2 and 3");
  for (std::size_t at = 2; at < words.size();) {
    if (same_word(words[at], "auth") && words.size() - at > 2) {
      if (!authenticate(std::span(words).subspan(at + 1, 2), reply)) return;
      at += 3;
    } else if (same_word(words[at], "setname") && words.size() - at > 1) {
      at += 2;
    } else {
      return reply.error("INVALID_REQUEST", "HELLO [version [AUTH name token] [SETNAME name]]");
    }
  }
  reply.map(3);
  reply.bulk("server");
  reply.bulk("baton");
  reply.bulk("version");
  reply.bulk(BATON_VERSION);
  reply.bulk("proto");
  reply.number(version_);
}

void RespSession::put(std::string text) {
  if (slots_.empty()) {
    output_ += text;
  } else {
    slots_.push_back({.text = std::move(text)});
  }
}

void RespSession::finished(Operation& operation) {
  const std::unique_ptr<Operation> ends_here(&operation);
  const auto slot = std::ranges::find(slots_, &operation, &Slot::operation);
  const bool is_next = slot == slots_.begin();
  RespReply reply(is_next ? output_ : slot->text, version_);  // a reply waits for those before it
  operation.write(reply);
  slot->operation = nullptr;
  if (!is_next) return;
  blocked_ = false;
  for (; !slots_.empty() && slots_.front().operation == nullptr; slots_.pop_front())
    output_ += slots_.front().text;
  if (!running_) changed_();
}

}  // namespace baton::server
