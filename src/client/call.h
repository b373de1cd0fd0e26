// One call on its way: the command, and whoever waits for the reply.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "wire/resp_value.h"

namespace baton::client {

enum class Safety : std::uint8_t {
  query,       // changes nothing
  repeatable,  // said twice it does no more than said once
  once,
};

struct Call {
  std::string words;      // encoded, without the number of them
  std::size_t count = 0;  // of the words
  Safety safety = Safety::once;
  Duration wait;  // the coordinator may take this long on purpose; if more than zero, WAIT_MS is added
  std::int64_t wait_until = 0;
  std::int64_t deadline = 0;  // on the clock of now_ms()
  std::stop_token stop;       // of a call that waits: nobody wants to wait any longer
  bool is_withdrawn = false;  // and the coordinator was told so
  // Told also when it was sent, on the same clock; empty once it was called.
  std::function<void(Result<wire::RespValue>, std::int64_t sent_at)> done;
  // What to do with a reply that nobody waits for any more.
  std::function<void(const wire::RespValue&)> orphan;

  bool was_sent = false;     // as a whole, on some connection
  bool was_garbled = false;  // it could not be read there
  std::int64_t sent_at = 0;  // not later than that, the last time
  std::multimap<std::int64_t, Call*>::iterator in_deadlines;

  bool is_settled() const { return !done; }
  bool may_repeat() const { return safety != Safety::once; }
};
using CallPtr = std::unique_ptr<Call>;

std::int64_t now_ms();  // a clock that only runs forward, also while the machine sleeps

}  // namespace baton::client
