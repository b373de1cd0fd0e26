// LEASE: takes tasks and fetches their payloads; waits if there is none and the worker wants to. With a
// completion in front of it, NEXT.
#pragma once

#include <optional>
#include <vector>

#include "server/desk.h"

namespace baton::server {

struct LeaseOrder {
  core::LeaseTask request;
  std::uint64_t count = 1;
  Duration wait;
};

class LeaseOperation final : public Operation {
 public:
  explicit LeaseOperation(LeaseOrder order, std::optional<core::CompleteTask> completes = {})
      : order_(std::move(order)), completes_(std::move(completes)) {}

  void begin(Desk& desk) override;
  void answered(Desk& desk, std::size_t index, engine::Answer&& answer) override;
  void fetched(Desk& desk, std::size_t index, Result<Bytes> bytes) override;
  void wake(Desk& desk, bool time_is_up) override;
  void abandoned(Desk& desk) override;
  void write(ReplyWriter& reply) override;
  bool is_blocking() const override { return order_.wait > Duration{} && taken_.empty(); }
  std::size_t weight() const override { return 8 * order_.count; }

 private:
  struct Taken {
    core::Granted granted;
    std::string queue;
    engine::SharedBytes payload;  // none if it is empty, or could not be read
  };
  void ask(Desk& desk);
  void ask_for_more(Desk& desk);
  void look_at(const engine::Answer& decided);
  void release(Desk& desk, const Taken& taken, Duration delay = {}) const;

  LeaseOrder order_;
  std::optional<core::CompleteTask> completes_;
  std::optional<engine::Answer> completed_;
  std::vector<Taken> taken_;
  std::optional<Error> error_;
  core::Lsn lsn_ = 0;
  std::uint64_t lanes_ = 0;    // in which each task is looked for
  std::uint64_t wanted_ = 0;   // to be asked for yet
  std::size_t asked_ = 0;      // and not yet answered
  std::size_t undecided_ = 0;  // the last of those, as far as is known
  std::uint64_t granted_bytes_ = 0;
  std::uint64_t largest_ = 0;  // of them
  core::Lsn looked_at_ = 0;    // where it found nothing
  bool at_capacity_ = false;
  std::optional<Instant> deadline_;
};

}  // namespace baton::server
