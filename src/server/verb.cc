#include "server/verb.h"

#include "server/request_operation.h"

namespace baton::server {

std::span<const std::span<const Verb>> verb_families() {
  static const std::array kFamilies{submit_verbs(), work_verbs(),   query_verbs(),        queue_verbs(),
                                    server_verbs(), stream_verbs(), stream_query_verbs(), group_verbs()};
  return kFamilies;
}

const Verb* find_verb(std::string_view name) {
  for (const auto& verbs : verb_families()) {
    for (const Verb& verb : verbs) {
      if (same_word(verb.name, name)) return &verb;
    }
  }
  return nullptr;
}

std::unique_ptr<Operation> make_operation(const Verb& verb, const std::string& ns, Arguments& arguments) {
  if (const auto* make = std::get_if<MakeRequest*>(&verb.make))
    return std::make_unique<RequestOperation>((*make)(ns, arguments));
  return std::get<MakeOperation*>(verb.make)(ns, arguments);
}

}  // namespace baton::server
