// What ordinary Redis clients ask of a server besides its verbs: who it is, what it can do, and that it notes
// who they are. Commands about the connection only; none of them changes anything else.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/caller.h"
#include "server/desk.h"
#include "wire/resp.h"

namespace baton::server {

struct RedisCall {
  Desk& desk;
  const Access& access;
  Caller& caller;
  std::span<const std::string_view> words;  // the command's name first
  std::string& out;                         // for the reply

  wire::RespWriter reply() const { return wire::RespWriter(out, caller.version); }
  void refuse(std::string_view message) const { reply().error("INVALID_REQUEST", message); }
};

struct RedisCommand {
  std::string_view name;  // in lower case
  int arity;              // words at least if negative, else exactly
  std::string_view about;
  bool at_once = false;  // between MULTI and EXEC, too
  // The reply is in `out`; or it is an operation's, for it tells of what has to be durable first.
  std::unique_ptr<Operation> (*run)(const RedisCall& call) = nullptr;
};

std::span<const RedisCommand> redis_commands();
const RedisCommand* find_redis_command(std::string_view name);  // whatever its case

bool has_right_length(int arity, std::size_t words);

// Each in a file of its own.
std::unique_ptr<Operation> run_hello(const RedisCall& call);
std::unique_ptr<Operation> run_client(const RedisCall& call);
std::unique_ptr<Operation> run_command(const RedisCall& call);
std::unique_ptr<Operation> run_info(const RedisCall& call);

// AUTH's and HELLO's: notes who it is, or writes the refusal.
bool authenticate(const RedisCall& call, std::span<const std::string_view> name_and_token);

}  // namespace baton::server
