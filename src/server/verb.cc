#include "server/verb.h"

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

}  // namespace baton::server
