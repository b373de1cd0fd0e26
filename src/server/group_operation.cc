#include "server/group_operation.h"

#include <utility>

namespace baton::server {

void GroupOperation::begin(Desk& desk) { call(desk.groups, desk.authority().durable(), desk.now()); }

void GroupOperation::call(Groups& groups, core::Lsn lsn, Instant now) {
  lsn_ = lsn;
  said_ = call_(groups, now);
}

void GroupOperation::write(ReplyWriter& reply) {
  if (!said_) return reply.error(said_.error());
  reply.map(1 + said_->members);
  reply.member("lsn", lsn_);
  if (said_->write) said_->write(reply);
}

void GroupQuestion::begin(Desk& desk) {
  groups_ = &desk.groups;
  desk.look(*this);
}

void GroupQuestion::look(engine::Engine& engine) { call(*groups_, engine.state().last, engine.now()); }

void MeetOperation::begin(Desk& desk) { begun_ = desk.arrive(*this, name_, seat_, std::move(arrival_)); }

void MeetOperation::met(Desk& desk, Result<group::Share> outcome) {
  lsn_ = desk.authority().durable();
  if (desk.is_stopping()) {  // which is no end of it: the rank goes on when the server is there again
    begun_ = std::unexpected(outcome ? Error{Errc::closed, "the server is stopping"} : outcome.error());
    return;
  }
  outcome_ = std::move(outcome);
}

void MeetOperation::write(ReplyWriter& reply) {
  if (!begun_) return reply.error(begun_.error());
  if (!outcome_) {  // it was taken part in, and this is how it ended for all
    reply.map(3);
    reply.member("lsn", lsn_);
    reply.member("error_code", word(outcome_.error().code));
    return reply.member("error", outcome_.error().message);
  }
  reply.map(2);
  reply.member("lsn", lsn_);
  reply.name("share");
  const group::Share& share = *outcome_;
  reply.list(share->size());
  for (const Bytes& bytes : *share) {
    reply.map(1);
    reply.name("bytes");
    reply.bytes(bytes);
  }
}

void WatchOperation::begin(Desk& desk) { begun_ = desk.watch(*this, name_, seat_, doing_, wait_); }

void WatchOperation::met(Desk& desk, Result<group::Share> outcome) {
  lsn_ = desk.authority().durable();
  if (!outcome)
    begun_ = std::unexpected(outcome.error());
  else if (*outcome)
    waited_for_ = text_of((*outcome)->front());
}

void WatchOperation::write(ReplyWriter& reply) {
  if (!begun_) return reply.error(begun_.error());
  reply.map(waited_for_.empty() ? 1 : 2);
  reply.member("lsn", lsn_);
  if (!waited_for_.empty()) reply.member("waited_for", waited_for_);
}

}  // namespace baton::server
