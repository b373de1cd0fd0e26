#include "server/verb.h"

namespace baton::server {

const Verb* find_verb(std::string_view name) {
  for (const auto& verbs : {submit_verbs(), work_verbs(), query_verbs(), queue_verbs()}) {
    for (const Verb& verb : verbs) {
      if (same_word(verb.name, name)) return &verb;
    }
  }
  return nullptr;
}

}  // namespace baton::server
