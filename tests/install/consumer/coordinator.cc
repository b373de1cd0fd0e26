// Somebody else's coordinator of pipelines, which is held to the contract.
#include <atomic>
#include <iostream>

#include "pipeline/contract.h"
#include "pipeline/memory_coordinator.h"

namespace {

using namespace baton;
using namespace baton::pipeline;

class Mine : public MemoryCoordinator {
 public:
  using MemoryCoordinator::MemoryCoordinator;
};

class Subject : public contract::Subject {
 public:
  std::unique_ptr<DistributedCoordinator> connect() override { return std::make_unique<Mine>(exchange_); }
  Duration lease() const override { return kLostAfter; }
  void let_pass(Duration time) override {
    now_ms_ += time.ms;
    exchange_.time_has_passed();
  }

 private:
  std::atomic<std::int64_t> now_ms_ = 1;
  MemoryExchange exchange_{{.now = [this] { return Instant{now_ms_}; }}};
};

}  // namespace

int main() {
  for (const contract::Check& check : contract::checks()) {
    Subject subject;
    if (const Status kept = check.run(subject); !kept) {
      std::cerr << check.promise << ": " << kept.error().message << "\n";
      return 1;
    }
  }
}
