// The thread that drives the authority of an embedded coordinator.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/authority.h"
#include "engine/coordinator.h"

namespace baton {

class Coordinator::Loop {
 public:
  static Result<std::unique_ptr<Loop>> open(const std::string& directory, CoordinatorOptions options);
  ~Loop();

  engine::Authority& authority() { return *authority_; }
  Status close();

 private:
  void run();
  void wake();

  std::mutex mutex_;
  std::condition_variable wakes_;
  bool woken_ = false;
  bool abandoned_ = false;  // the object goes without close()

  std::unique_ptr<engine::Authority> authority_;
  std::thread thread_;
};

}  // namespace baton
