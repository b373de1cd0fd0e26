#include "server/redis_command.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <string>

#include "server/arguments.h"

namespace baton::server {
namespace {

using Nothing = std::unique_ptr<Operation>;  // the reply is written already

Nothing run_ping(const RedisCall& call) {
  if (call.words.size() > 2) {
    call.refuse("PING [message]");
  } else {
    call.words.size() == 2 ? call.reply().bulk(call.words[1]) : call.reply().simple("PONG");
  }
  return {};
}

Nothing run_echo(const RedisCall& call) {
  call.reply().bulk(call.words[1]);
  return {};
}

Nothing run_auth(const RedisCall& call) {
  if (call.words.size() > 3) {
    call.refuse("AUTH needs a token, or a name and a token");
  } else if (authenticate(call, call.words.subspan(1))) {
    call.reply().simple("OK");
  }
  return {};
}

Nothing run_quit(const RedisCall& call) {
  call.caller.leaves = true;
  call.reply().simple("OK");
  return {};
}

// With a place among the connections of that principal, and with no other.
bool becomes(const RedisCall& call, PrincipalRef principal) {
  call.caller.principal.reset();
  call.caller.place = {};  // it may be the same as before
  auto place = call.desk.principals.enter(principal->name(), call.desk.limits.connections_per_principal_max);
  if (!place) {
    call.reply().error("EXHAUSTED",
                       fmt::format("'{}' has too many connections; retry_after_ms=1000", principal->name()));
    return false;
  }
  call.caller.place = std::move(*place);
  call.caller.principal = std::move(principal);
  return true;
}

Nothing run_reset(const RedisCall& call) {
  const PrincipalRef certified = call.caller.certified;
  call.caller = {.id = call.caller.id, .principal = call.access.everyone(), .certified = certified};
  if (certified && !becomes(call, certified)) return {};
  call.reply().simple("RESET");
  return {};
}

Nothing run_select(const RedisCall& call) {
  if (call.words[1] == "0") {
    call.reply().simple("OK");
  } else {
    call.refuse("there is one database, 0; USE chooses a namespace");
  }
  return {};
}

Nothing run_use(const RedisCall& call) {
  if (!core::is_name(call.words[1])) {
    call.refuse("USE needs a namespace: 1 to 128 graphic ASCII characters");
  } else {
    call.caller.ns = call.words[1];
    call.reply().simple("OK");
  }
  return {};
}

// What clients look up before they trust a server. Settings themselves are given when it starts.
constexpr std::pair<std::string_view, std::string_view> kSettings[] = {
    {"appendfsync", "always"}, {"appendonly", "yes"}, {"databases", "1"}, {"save", ""}, {"timeout", "0"}};

bool matches(const std::string& pattern, std::string_view name) {
  return ::fnmatch(pattern.c_str(), std::string(name).c_str(), FNM_CASEFOLD) == 0;
}

Nothing run_config(const RedisCall& call) {
  if (!same_word(call.words[1], "get") || call.words.size() < 3) {
    call.refuse("CONFIG GET pattern; settings are given when the server starts, see `baton serve --help`");
    return {};
  }
  std::vector<std::pair<std::string_view, std::string_view>> found;
  for (const auto& setting : kSettings) {
    const auto named = [&](std::string_view word) { return matches(std::string(word), setting.first); };
    if (std::ranges::any_of(call.words.subspan(2), named)) found.push_back(setting);
  }
  wire::RespWriter reply = call.reply();
  reply.map(found.size());
  for (const auto& [name, value] : found) reply.bulk(name), reply.bulk(value);
  return {};
}

Nothing run_multi(const RedisCall& call) {
  if (!call.caller.principal) {
    call.reply().error("NOAUTH", "say who you are first: AUTH token, or AUTH name token");
    return {};
  }
  if (call.caller.transaction.is_open()) {
    call.refuse("MULTI within MULTI");
  } else {
    call.caller.transaction.open();
    call.reply().simple("OK");
  }
  return {};
}

Nothing run_exec(const RedisCall& call) {
  Transaction& transaction = call.caller.transaction;
  if (!transaction.is_open()) {
    call.refuse("EXEC without MULTI");
  } else if (transaction.is_spoiled()) {
    transaction.close();
    call.reply().error("EXECABORT", "a command was refused, so none was begun");
  } else {
    call.caller.executes = true;
  }
  return {};
}

Nothing run_discard(const RedisCall& call) {
  if (!call.caller.transaction.is_open()) {
    call.refuse("DISCARD without MULTI");
  } else {
    call.caller.transaction.close();
    call.reply().simple("OK");
  }
  return {};
}

Nothing run_watch(const RedisCall& call) {
  call.refuse("nothing can be watched: commands between MULTI and EXEC stand for themselves");
  return {};
}

constexpr RedisCommand kCommands[] = {
    {"ping", -1, "Says PONG, or the message", false, run_ping},
    {"echo", 2, "Says the message", false, run_echo},
    {"hello", -1, "Chooses the protocol's version and says who is calling", false, run_hello},
    {"auth", -2, "Says who is calling", false, run_auth},
    {"use", 2, "Chooses the namespace of this connection", false, run_use},
    {"select", 2, "There is one database, 0", false, run_select},
    {"client", -2, "What this connection has said of itself", false, run_client},
    {"command", -1, "What commands there are", false, run_command},
    {"config", -2, "What clients look up before they trust a server", false, run_config},
    {"info", -1, "How the server is doing, as text", false, run_info},
    {"multi", 1, "Gathers the commands that follow", true, run_multi},
    {"exec", 1, "Begins what was gathered; the replies are one array", true, run_exec},
    {"discard", 1, "Forgets what was gathered", true, run_discard},
    {"watch", -2, "Refused: nothing can be watched", true, run_watch},
    {"reset", 1, "Makes this connection as it was when it began", true, run_reset},
    {"quit", -1, "Ends the connection", true, run_quit},
};

}  // namespace

std::span<const RedisCommand> redis_commands() { return kCommands; }

const RedisCommand* find_redis_command(std::string_view name) {
  const auto found =
      std::ranges::find_if(kCommands, [&](const RedisCommand& one) { return same_word(one.name, name); });
  return found == std::end(kCommands) ? nullptr : found;
}

bool has_right_length(int arity, std::size_t words) {
  return arity < 0 ? words >= static_cast<std::size_t>(-arity) : words == static_cast<std::size_t>(arity);
}

bool authenticate(const RedisCall& call, std::span<const std::string_view> name_and_token) {
  if (!call.access.needs_token()) return true;
  // Redis clients that have only a token send it alone, or under the name "default".
  std::string_view name = name_and_token.size() > 1 ? name_and_token[0] : "";
  if (name == "default") name = "";
  PrincipalRef found = call.access.find(name, name_and_token.back());
  if (!found) {
    ++call.desk.counters.rejections["WRONGPASS"];
    call.reply().error("WRONGPASS", "no such name and token");
    return false;
  }
  return becomes(call, std::move(found));
}

}  // namespace baton::server
