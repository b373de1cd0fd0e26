// Arguments as JSON or as the query of a URL: whatever comes is read or refused, and what is read is used by
// a verb without harm.
#include <cstdint>
#include <string_view>

#include "server/json_arguments.h"
#include "server/verb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton::server;
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  const auto verbs = verb_families()[data[0] % verb_families().size()];
  const Verb& verb = verbs[data[1] % verbs.size()];
  JsonArguments object;
  if (object.read_object(verb.parameters, text)) (void)make_operation(verb, object.ns(), object.arguments());
  JsonArguments query;
  if (query.read_query(verb.parameters, text)) (void)make_operation(verb, query.ns(), query.arguments());
  return 0;
}
