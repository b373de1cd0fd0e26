// Waiting for something that may never be answered.
#pragma once

#include <memory>
#include <semaphore>

namespace baton::engine {

// Hands `ask` a ticket and returns when the last copy of it is gone. A callback that holds one lets go of it
// after it was called, or uncalled when the coordinator goes: nobody waits for an answer that cannot come.
template <class Ask>
void await(Ask ask) {
  std::binary_semaphore gone(0);
  ask(std::shared_ptr<void>(nullptr, [&](void*) { gone.release(); }));
  gone.acquire();
}

}  // namespace baton::engine
