#include "tests/chaos/people.h"

#include <chrono>
#include <random>
#include <thread>

namespace baton::chaos {
namespace {

constexpr Duration kTtl = milliseconds(150);

void pause(std::int64_t us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

// Has something done, and puts it into the history with its times. Where nobody answers there is no use in
// asking on and on.
template <class Call>
Operation record(History& history, const std::string& who, Call call) {
  const std::int64_t invoked_us = now_us();
  Operation o = call();
  o.who = who, o.invoked_us = invoked_us, o.returned_us = now_us();
  history.add(o);
  if (o.outcome == Outcome::unknown || o.outcome == Outcome::absent) pause(10'000);
  return o;
}

template <class KeyOf>
void submit_many(const Person& person, History& history, KeyOf next_key) {
  constexpr std::size_t kAtOnce = 20;
  std::vector<std::string> keys;
  while (keys.size() < kAtOnce) keys.push_back(next_key());
  const std::int64_t invoked_us = now_us();
  for (Operation& o : person.caller->submit_all(keys)) {
    o.who = person.name, o.invoked_us = invoked_us;
    history.add(std::move(o));
  }
}

class Worker {
 public:
  Worker(Person person, Manner manner, History& history)
      : person_(std::move(person)), manner_(manner), history_(history), dice_(person_.seed) {}

  void take_one() {
    client::Held held;
    record(history_, person_.name, [&] { return person_.caller->lease(person_.name, kTtl, held); });
    if (held.lease.empty()) return;
    const std::uint64_t mood = manner_ == Manner::diligent ? 99 : dice_() % 100;
    if (mood < 5) return;  // forgets it
    if (mood < 15) {
      record(history_, person_.name, [&] { return person_.caller->fail(held); });
      return;
    }
    if (mood < 25) pause(kTtl.ms * 1500);  // comes back too late
    if (mood >= 25 && mood < 40)
      record(history_, person_.name, [&] { return person_.caller->extend(held, kTtl); });
    finish(held);
  }

 private:
  // Writes to the resource under its fence, then says it is done; again if it was not answered.
  void finish(const client::Held& held) {
    record(history_, person_.name, [&] {
      return Operation{.kind = Kind::write,
                       .outcome = Outcome::done,
                       .task = lsn_of(held.task),
                       .lease = lsn_of(held.lease)};
    });
    for (int tries = 0; tries < 3; ++tries) {
      const Operation said = record(history_, person_.name, [&] { return person_.caller->complete(held); });
      if (said.outcome == Outcome::done || said.outcome == Outcome::refused) return;
    }
  }

  const Person person_;
  const Manner manner_;
  History& history_;
  std::minstd_rand dice_;
};

}  // namespace

void submit_tasks(Person person, History& history, const std::atomic<bool>& stops, std::uint64_t first_key) {
  std::minstd_rand dice(static_cast<unsigned>(person.seed));
  const auto key_of = [&](std::uint64_t number) { return person.name + "." + std::to_string(number); };
  for (std::uint64_t number = first_key; !stops; ++number) {
    if (dice() % 50 == 0) submit_many(person, history, [&] { return key_of(number++); });
    const std::string key = key_of(number);
    for (int tries = 0; tries < 2; ++tries) {
      const Operation said = record(history, person.name, [&] { return person.caller->submit(key); });
      if (said.outcome != Outcome::unknown || dice() % 2 == 0) break;  // or asks again under the same key
    }
    pause(4000 + dice() % 12'000);
  }
}

void ask_about_tasks(Person person, const std::string& whose, History& history,
                     const std::atomic<bool>& stops) {
  std::minstd_rand dice(static_cast<unsigned>(person.seed));
  for (std::uint64_t number = 0; !stops; number += dice() % 3) {
    record(history, person.name, [&] { return person.caller->get(whose + "." + std::to_string(number)); });
    pause(2000 + dice() % 6000);
  }
}

void work(Person person, Manner manner, History& history, const std::atomic<bool>& stops) {
  Worker worker(std::move(person), manner, history);
  while (!stops) worker.take_one();
}

}  // namespace baton::chaos
