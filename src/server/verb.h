// The verbs: what may be asked of a server, by whom, with which arguments. The RESP commands, the HTTP calls,
// their documents and the help all come from this table.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "server/access.h"
#include "server/arguments.h"
#include "server/operation.h"

namespace baton::server {

using MakeRequest = core::Request(const std::string& ns, Arguments& arguments);
using MakeOperation = std::unique_ptr<Operation>(const std::string& ns, Arguments& arguments);

struct Verb {
  std::string_view name;  // in lower case
  Permission permission;
  std::span<const Parameter> parameters;
  // What it makes of its arguments: a request, whose answer is the reply, or an operation of its own. A
  // complaint of the arguments means that it is not used.
  std::variant<MakeRequest*, MakeOperation*> make;
  std::string_view about;
  std::string_view reply;  // what the HTTP document calls it
};

// Parameters of one verb, and those it shares with others.
template <std::size_t kOwn, std::size_t kShared>
constexpr std::array<Parameter, kOwn + kShared> joined(const Parameter (&own)[kOwn],
                                                       const Parameter (&shared)[kShared]) {
  std::array<Parameter, kOwn + kShared> all;
  std::ranges::copy(shared, std::ranges::copy(own, all.begin()).out);
  return all;
}

std::span<const Verb> submit_verbs();
std::span<const Verb> work_verbs();
std::span<const Verb> query_verbs();
std::span<const Verb> queue_verbs();
std::span<const Verb> server_verbs();
std::span<const Verb> stream_verbs();
std::span<const Verb> stream_query_verbs();
std::span<const Verb> group_verbs();
std::span<const std::span<const Verb>> verb_families();  // all of them

const Verb* find_verb(std::string_view name);  // whatever its case
// Also where it makes a request.
std::unique_ptr<Operation> make_operation(const Verb& verb, const std::string& ns, Arguments& arguments);

}  // namespace baton::server
