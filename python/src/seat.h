// A rank's place in a group, as Python has it: shared by the group and the stores that save and load with it.
#pragma once

#include <atomic>
#include <memory>

#include "base/result.h"
#include "checkpoint/collective.h"

namespace baton::python {

struct Seat {
  explicit Seat(std::unique_ptr<checkpoint::Collective> joined) : collective(std::move(joined)) {}

  const std::unique_ptr<checkpoint::Collective> collective;
  std::atomic<bool> is_taken = false;
};

// One call at a time uses a collective. Whoever has the turn keeps the seat alive.
class Turn {
 public:
  // Raises WRONG_STATE if somebody else has it.
  explicit Turn(std::shared_ptr<Seat> seat);
  ~Turn() {
    if (seat_) seat_->is_taken = false;
  }
  Turn(Turn&& other) noexcept : seat_(std::move(other.seat_)) {}
  Turn& operator=(Turn&&) = delete;

  checkpoint::Collective& collective() const { return *seat_->collective; }

 private:
  std::shared_ptr<Seat> seat_;
};

// Deletes without the interpreter's lock: leaving a group, or the last save, may have to wait for others.
struct DeleteUnlocked {
  template <class T>
  void operator()(T* resource) const {
    if (PyGILState_Check() == 0) return delete resource;
    const pybind11::gil_scoped_release unlock;
    delete resource;
  }
};
template <class T, class... Arguments>
std::shared_ptr<T> make_unlocked(Arguments&&... arguments) {
  return std::shared_ptr<T>(new T(std::forward<Arguments>(arguments)...), DeleteUnlocked());
}

}  // namespace baton::python
