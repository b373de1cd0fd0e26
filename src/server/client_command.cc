// HELLO and CLIENT: who is calling. A connection learns of itself only, never of others.
#include <fmt/format.h>

#include <algorithm>

#include "core/names.h"
#include "server/arguments.h"
#include "server/redis_command.h"

namespace baton::server {
namespace {

using Nothing = std::unique_ptr<Operation>;

bool is_client_name(std::string_view name) { return name.empty() || core::is_name(name); }
constexpr std::string_view kBadName = "a connection's name is up to 128 graphic ASCII characters";

std::string described(const Caller& caller) {
  return fmt::format("id={} name={} resp={} user={} namespace={} lib-name={} lib-ver={}\n", caller.id,
                     caller.name, caller.version, caller.principal ? caller.principal->name() : "", caller.ns,
                     caller.library, caller.library_version);
}

void get_id(const RedisCall& call) { call.reply().number(static_cast<std::int64_t>(call.caller.id)); }

void get_name(const RedisCall& call) {
  call.caller.name.empty() ? call.reply().null() : call.reply().bulk(call.caller.name);
}

void set_name(const RedisCall& call) {
  if (!is_client_name(call.words[2])) return call.refuse(kBadName);
  call.caller.name = call.words[2];
  call.reply().simple("OK");
}

void set_info(const RedisCall& call) {
  const bool is_name = same_word(call.words[2], "lib-name");
  if (!is_name && !same_word(call.words[2], "lib-ver"))
    return call.refuse("CLIENT SETINFO LIB-NAME name, or LIB-VER version");
  if (!is_client_name(call.words[3])) return call.refuse(kBadName);
  (is_name ? call.caller.library : call.caller.library_version) = call.words[3];
  call.reply().simple("OK");
}

void describe(const RedisCall& call) { call.reply().bulk(described(call.caller)); }

// Nothing is evicted, and nothing keeps count of reads, so there is nothing to switch off.
void accept_switch(const RedisCall& call) {
  const bool known = same_word(call.words[2], "on") || same_word(call.words[2], "off");
  known ? call.reply().simple("OK") : call.refuse("ON or OFF");
}

struct Subcommand {
  std::string_view name;
  int arity;
  std::string_view usage;
  void (*run)(const RedisCall& call);
};

constexpr Subcommand kSubcommands[] = {
    {"id", 2, "ID", get_id},
    {"getname", 2, "GETNAME", get_name},
    {"setname", 3, "SETNAME name", set_name},
    {"setinfo", 4, "SETINFO LIB-NAME name, or LIB-VER version", set_info},
    {"info", 2, "INFO", describe},
    {"list", -2, "LIST", describe},
    {"no-evict", 3, "NO-EVICT ON or OFF", accept_switch},
    {"no-touch", 3, "NO-TOUCH ON or OFF", accept_switch},
};

// What HELLO asks for. Nothing of it is done before all of it is understood.
struct Greeting {
  int version = 0;
  std::span<const std::string_view> name_and_token;
  std::optional<std::string_view> name;
};

std::optional<Greeting> read_greeting(std::span<const std::string_view> words, int version) {
  Greeting greeting{.version = words.size() < 2 ? version : words[1] == "3" ? 3 : 2};
  for (std::size_t at = 2; at < words.size();) {
    if (same_word(words[at], "auth") && words.size() - at > 2) {
      greeting.name_and_token = words.subspan(at + 1, 2);
      at += 3;
    } else if (same_word(words[at], "setname") && words.size() - at > 1) {
      greeting.name = words[at + 1];
      at += 2;
    } else {
      return {};
    }
  }
  return greeting;
}

}  // namespace

Nothing run_client(const RedisCall& call) {
  const auto found = std::ranges::find_if(
      kSubcommands, [&](const Subcommand& one) { return same_word(one.name, call.words[1]); });
  if (found == std::end(kSubcommands)) {
    call.reply().error("UNKNOWN_COMMAND",
                       fmt::format("CLIENT {:.40} is not known here: every command is answered, and a "
                                   "connection has no power over others",
                                   call.words[1]));
  } else if (!has_right_length(found->arity, call.words.size())) {
    call.refuse(fmt::format("CLIENT {}", found->usage));
  } else {
    found->run(call);
  }
  return {};
}

Nothing run_hello(const RedisCall& call) {
  if (call.words.size() > 1 && call.words[1] != "2" && call.words[1] != "3") {
    call.reply().error("NOPROTO", "this server speaks RESP 2 and 3");
    return {};
  }
  const auto greeting = read_greeting(call.words, call.caller.version);
  if (!greeting) {
    call.refuse("HELLO [version [AUTH name token] [SETNAME name]]");
    return {};
  }
  if (greeting->name && !is_client_name(*greeting->name)) {
    call.refuse(kBadName);
    return {};
  }
  if (!greeting->name_and_token.empty() && !authenticate(call, greeting->name_and_token)) return {};
  if (greeting->name) call.caller.name = *greeting->name;
  call.caller.version = greeting->version;

  wire::RespWriter reply = call.reply();
  reply.map(7);
  const std::pair<std::string_view, std::string_view> texts[] = {
      {"server", "baton"}, {"version", BATON_VERSION}, {"mode", "standalone"}, {"role", "master"}};
  for (const auto& [name, value] : texts) reply.bulk(name), reply.bulk(value);
  reply.bulk("proto");
  reply.number(call.caller.version);
  reply.bulk("id");
  reply.number(static_cast<std::int64_t>(call.caller.id));
  reply.bulk("modules");
  reply.array(0);
  return {};
}

}  // namespace baton::server
