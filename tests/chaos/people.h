// Those who use the server while it is tormented: some submit, some ask, some work, and some of these work
// badly. All they do is put into the history.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/chaos/caller.h"
#include "tests/chaos/history.h"

namespace baton::chaos {

struct Person {
  std::string name;
  std::unique_ptr<Caller> caller;
  std::uint64_t seed = 1;
};

// Each runs until `stops`. Keys are the name and a number, from `first_key` on.
void submit_tasks(Person person, History& history, const std::atomic<bool>& stops, std::uint64_t first_key);
void ask_about_tasks(Person person, const std::string& whose, History& history,
                     const std::atomic<bool>& stops);

enum class Manner : std::uint8_t {
  lively,    // fails, stalls until the lease is over, forgets tasks, and repeats what had no answer
  diligent,  // completes whatever it gets
};
void work(Person person, Manner manner, History& history, const std::atomic<bool>& stops);

}  // namespace baton::chaos
