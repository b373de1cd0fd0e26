// Eight instances of a service, each a process of its own, and all that can happen to them: killed,
// suspended, sent home, hired.
#pragma once

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/crash/child.h"

namespace baton::stream {

class Chaos {
 public:
  static constexpr std::size_t kInstances = 8;

  // `command` starts an instance, which says "open" when it is at work.
  Chaos(std::vector<std::string> command, unsigned seed) : command_(std::move(command)), dice_(seed) {
    for (auto& place : places_) place = hired();
  }

  // Something happens to somebody.
  void strike() {
    auto& place = places_[dice_() % kInstances];
    const auto now = std::chrono::steady_clock::now();
    for (auto& paused : paused_) {
      if (paused.second && *paused.second <= now) paused.first->signal(SIGCONT), paused.second.reset();
    }
    const auto what = dice_() % 8;
    if (!place) {
      place = hired();
      ++faults["joined"];
    } else if (paused_[place.get()]) {
      return;  // it has trouble enough
    } else if (what < 3) {
      place->signal(SIGKILL);
      ++faults["killed"];
      bury(place);
    } else if (what < 6) {
      place->signal(SIGSTOP);
      // Longer than its lease, and sometimes longer than others take it for alive.
      paused_[place.get()] = crash::after_ms(dice_() % 4 == 0 ? 12'000 : 3'000);
      ++faults["suspended"];
    } else {
      place->signal(SIGTERM);
      ++faults["left"];
      bury(place);
    }
  }

  void make_peace() {
    for (auto& paused : paused_) {
      if (paused.second) paused.first->signal(SIGCONT);
    }
    for (auto& place : places_) {
      if (!place) place = hired();
    }
  }

  // A run counts once everything that can happen to an instance has happened.
  bool has_done_everything() const {
    return std::ranges::all_of(kKinds, [&](const char* kind) { return faults.contains(kind); });
  }

  std::string summary() const {
    std::string text;
    for (const auto& [kind, times] : faults) text += " " + kind + " " + std::to_string(times);
    return text;
  }

  static constexpr const char* kKinds[] = {"killed", "suspended", "left", "joined"};
  std::map<std::string, int> faults;

 private:
  std::unique_ptr<crash::Child> hired() const {
    auto child = std::make_unique<crash::Child>(crash::ChildOptions{.command = command_});
    child->listen(crash::after_ms(60'000), [](const std::string& line) { return line != "open"; });
    return child;
  }
  void bury(std::unique_ptr<crash::Child>& place) {
    (void)place->wait(crash::after_ms(60'000));
    paused_.erase(place.get());
    place.reset();
  }

  const std::vector<std::string> command_;
  std::minstd_rand dice_;
  std::unique_ptr<crash::Child> places_[kInstances];
  std::map<crash::Child*, std::optional<crash::Deadline>> paused_;
};

}  // namespace baton::stream
