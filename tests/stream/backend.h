// What the conformance suite needs of an implementation: a coordinator with nothing in it, as many handles on
// it as there are instances, and power over time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "stream/work_coordinator.h"

namespace baton::stream {

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::unique_ptr<WorkCoordinator> connect() = 0;
  virtual void let_time_pass(Duration duration) = 0;
  // Puts every dead letter back; how many there were.
  virtual int replay_dead_letters() = 0;
  // Forgets every dead letter for good; how many there were.
  virtual int purge_dead_letters() = 0;
  virtual void forget_what_is_past_its_time() {}  // where that does not happen by itself
  // What makes `baton stream` look there; nothing: it cannot.
  virtual std::vector<std::string> options_of_command() const { return {}; }
};

struct BackendKind {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;  // null: it cannot be tested here
};
inline void PrintTo(const BackendKind& kind, std::ostream* out) { *out << kind.name; }

BackendKind postgres_backend();
BackendKind embedded_backend();  // in a coordinator of this process
BackendKind served_backend();    // in one that is reached through a socket

}  // namespace baton::stream
