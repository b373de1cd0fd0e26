// A verb under way: what it asks of the authority, and the reply it makes of the answers. It is finished when
// nothing it asked for is outstanding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "group/operation.h"
#include "server/reply_writer.h"

namespace baton::server {

class Desk;
class Operation;

// A task under a lease, as whoever holds it names it.
struct HeldLease {
  core::TaskId task;
  core::LeaseId lease;
};

// Who waits for the reply. It owns the operation from when it is finished.
class Finisher {
 public:
  std::size_t questions = 0;  // of its operations, that stand in line

  virtual void finished(Operation& operation) = 0;
  // Whether it wants to hear of leases it was given that were lost; then it does, and may keep them for a
  // reply.
  virtual bool wants_news() const { return false; }
  virtual void lost(const HeldLease&) {}
  virtual std::vector<HeldLease> take_lost() { return {}; }

 protected:
  ~Finisher() = default;
};

class Operation {
 public:
  Operation() = default;
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Asks the desk for whatever is needed.
  virtual void begin(Desk& desk) = 0;
  virtual void answered(Desk&, std::size_t /*index*/, engine::Answer&&) {}
  virtual void look(engine::Engine&) {}
  virtual void looked(Desk&) {}  // and what was seen is durable
  virtual void fetched(Desk&, std::size_t /*index*/, Result<Bytes>) {}
  // What it waited for may have come, or its time is over.
  virtual void wake(Desk&, bool /*time_is_up*/) {}
  // What the ranks of a group came to.
  virtual void met(Desk&, Result<group::Share>) {}
  // Whoever asked is gone: what was won for him goes back.
  virtual void abandoned(Desk&) {}
  void reply_to(ReplyWriter& writer) { refused_ ? writer.error(*refused_) : write(writer); }
  // It may wait; what the same connection asks for next is not begun before it is finished.
  virtual bool is_blocking() const { return false; }
  // Likewise, though not for long: what an operator does is written down first.
  bool is_audited() const { return audited_ != 0; }
  // How many of the commands that a connection may have under way it counts for: more, if its reply may be
  // long.
  virtual std::size_t weight() const { return 1; }

 protected:
  virtual void write(ReplyWriter& reply) = 0;

 private:
  friend class Desk;
  Desk* desk_ = nullptr;
  Finisher* finisher_ = nullptr;  // none once it is gone
  std::size_t outstanding_ = 0;
  std::uint64_t fetched_bytes_ = 0;
  std::uint64_t audited_ = 0;  // its line in the audit file, if it has one
  std::optional<Error> refused_;
};

}  // namespace baton::server
