// COMMAND: what commands there are, in the form that Redis clients and redis-cli's hints read.
#include <fmt/format.h>

#include <algorithm>

#include "server/redis_command.h"
#include "server/verb.h"

namespace baton::server {
namespace {

using Nothing = std::unique_ptr<Operation>;
using Words = std::vector<std::string_view>;

// A verb or a command about the connection, as COMMAND tells of either.
struct Entry {
  std::string_view name;
  int arity;
  std::string_view about;
  std::span<const Parameter> parameters;
  Words flags;
};

bool waits(const Verb& verb) {
  return std::ranges::find(verb.parameters, "wait_ms", &Parameter::name) != verb.parameters.end();
}

int arity_of(const Verb& verb) {
  int least = 1;
  bool open = false;
  for (const Parameter& parameter : verb.parameters) {
    if (parameter.place <= Place::counted) ++least;
    if (parameter.place != Place::position) open = true;
  }
  return open ? -least : least;
}

Entry entry_of(const Verb& verb) {
  Words flags{verb.permission == Permission::query ? "readonly" : "write"};
  if (verb.permission == Permission::admin) flags.push_back("admin");
  if (waits(verb)) flags.push_back("blocking");
  return {verb.name, arity_of(verb), verb.about, verb.parameters, std::move(flags)};
}

Entry entry_of(const RedisCommand& command) {
  return {command.name, command.arity, command.about, {}, {"fast", "noscript", "loading", "stale"}};
}

std::optional<Entry> find_entry(std::string_view name) {
  if (const Verb* verb = find_verb(name)) return entry_of(*verb);
  if (const RedisCommand* command = find_redis_command(name)) return entry_of(*command);
  return {};
}

std::vector<Entry> all_entries() {
  std::vector<Entry> all;
  for (const auto& verbs : verb_families()) {
    for (const Verb& verb : verbs) all.push_back(entry_of(verb));
  }
  for (const RedisCommand& command : redis_commands()) all.push_back(entry_of(command));
  return all;
}

// As simple strings: redis-cli stops at anything else.
void write_flags(wire::RespWriter& reply, const Words& flags) {
  reply.array(flags.size());
  for (const std::string_view flag : flags) reply.simple(flag);
}

// Name, arity, flags, then keys, of which there are none, categories, tips, key specifications, subcommands.
void write_info(wire::RespWriter& reply, const Entry& entry) {
  reply.array(10);
  reply.bulk(entry.name);
  reply.number(entry.arity);
  write_flags(reply, entry.flags);
  for (int keys = 0; keys < 3; ++keys) reply.number(0);
  for (int lists = 0; lists < 4; ++lists) reply.array(0);
}

std::string upper(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; });
  return text;
}

void write_argument(wire::RespWriter& reply, std::string_view name, std::string_view type,
                    const std::string& token, const Words& flags) {
  reply.map(2 + (token.empty() ? 0 : 1) + (flags.empty() ? 0 : 1));
  reply.bulk("name"), reply.bulk(name);
  reply.bulk("type"), reply.bulk(type);
  if (!token.empty()) reply.bulk("token"), reply.bulk(token);
  if (!flags.empty()) reply.bulk("flags"), write_flags(reply, flags);
}

void write_argument(wire::RespWriter& reply, const Parameter& parameter) {
  const std::string_view type = parameter.kind == Kind::flag     ? "pure-token"
                                : parameter.kind == Kind::number ? "integer"
                                                                 : "string";
  switch (parameter.place) {
    case Place::position: return write_argument(reply, parameter.name, type, "", {});
    case Place::counted:
      write_argument(reply, "count", "integer", "", {});
      return write_argument(reply, parameter.name, type, "", {"multiple"});
    case Place::option:
      return write_argument(reply, parameter.name, type, upper(parameter.name), {"optional"});
    case Place::repeated:
      return write_argument(reply, parameter.name, type, upper(parameter.name),
                            {"optional", "multiple", "multiple_token"});
  }
}

void write_docs(wire::RespWriter& reply, const Entry& entry) {
  const auto counted = std::ranges::count(entry.parameters, Place::counted, &Parameter::place);
  reply.bulk(entry.name);
  reply.map(entry.parameters.empty() ? 3 : 4);
  reply.bulk("summary"), reply.bulk(entry.about);
  reply.bulk("since"), reply.bulk("0.1.0");
  reply.bulk("group"), reply.bulk(find_verb(entry.name) != nullptr ? "generic" : "connection");
  if (entry.parameters.empty()) return;
  reply.bulk("arguments");
  reply.array(entry.parameters.size() + static_cast<std::size_t>(counted));
  for (const Parameter& parameter : entry.parameters) write_argument(reply, parameter);
}

std::vector<Entry> known_among(std::span<const std::string_view> names) {
  std::vector<Entry> found;
  for (const std::string_view name : names) {
    if (auto entry = find_entry(name)) found.push_back(std::move(*entry));
  }
  return found;
}

}  // namespace

Nothing run_command(const RedisCall& call) {
  wire::RespWriter reply = call.reply();
  const std::string_view what = call.words.size() > 1 ? call.words[1] : "";
  const auto named = call.words.subspan(std::min<std::size_t>(2, call.words.size()));
  if (what.empty() || (same_word(what, "info") && named.empty())) {
    const auto all = all_entries();
    reply.array(all.size());
    for (const Entry& entry : all) write_info(reply, entry);
  } else if (same_word(what, "info")) {
    reply.array(named.size());
    for (const std::string_view name : named) {
      const auto entry = find_entry(name);
      entry ? write_info(reply, *entry) : reply.null();
    }
  } else if (same_word(what, "docs")) {
    const auto entries = named.empty() ? all_entries() : known_among(named);
    reply.map(entries.size());
    for (const Entry& entry : entries) write_docs(reply, entry);
  } else if (same_word(what, "count")) {
    reply.number(static_cast<std::int64_t>(all_entries().size()));
  } else if (same_word(what, "list")) {
    const auto all = all_entries();
    reply.array(all.size());
    for (const Entry& entry : all) reply.bulk(entry.name);
  } else {
    call.refuse("COMMAND, or COMMAND COUNT, LIST, INFO [name …] or DOCS [name …]");
  }
  return {};
}

}  // namespace baton::server
