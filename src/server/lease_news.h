// Who is to be told when a lease ends without its holder: by expiry, or because the task was cancelled. That
// is the connection that took the lease or last extended it. Told once, and only when the entry is durable.
//
//   reply with a lease -> watch() ... recorded(expired, or cancelled) ... durable -> Finisher::lost()
//                                 ... recorded(completed, failed, released): nobody has to be told
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include <boost/unordered/unordered_flat_map.hpp>

#include "core/event.h"
#include "core/state.h"
#include "server/operation.h"

namespace baton::server {

class LeaseNews {
 public:
  explicit LeaseNews(const core::State& state) : state_(state) {}

  // From now on it is he who is told. If the lease is over already, that is news as well.
  void watch(Finisher& who, const HeldLease& held);
  void forget(Finisher& who);

  void recorded(const core::Event& event);  // and applied
  void tell(core::Lsn durable);             // whoever is to be told by now

  std::size_t size() const { return watches_.size(); }

 private:
  using Id = std::uint64_t;  // of who listens; never used again
  struct Watch {
    Id who;
    HeldLease held;
  };
  struct News {
    core::Lsn lsn;
    Watch watch;
  };

  enum class Standing : std::uint8_t { held, lost, ended_by_holder };
  Standing standing(const HeldLease& held) const;
  void ended(core::Lsn lease, bool is_news);

  const core::State& state_;
  // By the lease's lsn. No larger than there are leases: whoever hangs up is forgotten when they end.
  boost::unordered_flat_map<core::Lsn, Watch> watches_;
  std::unordered_map<Finisher*, Id> ids_;
  std::unordered_map<Id, Finisher*> listeners_;
  std::deque<News> news_;  // not yet durable
  Id last_id_ = 0;
};

}  // namespace baton::server
