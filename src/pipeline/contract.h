// The contract of a DistributedCoordinator as checks that anyone can run against an implementation of his
// own.
//
//   for (const contract::Check& check : contract::checks()) {
//     auto subject = make_my_subject();          // a run of its own for each check
//     if (Status kept = check.run(*subject); !kept) std::cerr << check.promise << ": " <<
//     kept.error().message;
//   }
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "pipeline/coordinator.h"

namespace baton::pipeline::contract {

// One run on whatever is tested.
class Subject {
 public:
  virtual ~Subject() = default;
  // Another party to the run: the master, or a worker. Outlived by the subject.
  virtual std::unique_ptr<DistributedCoordinator> connect() = 0;
  // How long a lease lasts without a heartbeat, and how long whoever is silent counts as being there.
  virtual Duration lease() const = 0;
  // Time passes: a clock of the subject's own moves on, or it sleeps.
  virtual void let_pass(Duration time) = 0;
};

struct Check {
  std::string_view name;     // for a test's name
  std::string_view promise;  // what is kept, or not
  std::function<Status(Subject&)> run;
};

std::span<const Check> checks();

}  // namespace baton::pipeline::contract
