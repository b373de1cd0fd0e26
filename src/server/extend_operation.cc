#include "server/extend_operation.h"

#include "server/request_operation.h"

namespace baton::server {

void ExtendOperation::begin(Desk& desk) {
  core::Request request = is_many_ ? core::Request(core::ExtendLeases{.ns = ns_, .items = items_})
                                   : core::Request(items_.front());
  desk.ask(*this, 0, request);
}

void ExtendOperation::answered(Desk& desk, std::size_t, engine::Answer&& answer) {
  answer_ = std::move(answer);
  if (!answer_.reply) return;
  const auto* many = std::get_if<core::ExtendedMany>(&*answer_.reply);
  for (std::size_t at = 0; at < items_.size(); ++at) {
    if (many == nullptr || many->items[at])
      desk.gave(*this, {desk.find(ns_, items_[at].task), items_[at].lease});
  }
  lost_ = desk.take_lost(*this);
}

void ExtendOperation::write(ReplyWriter& reply) { write_answer(reply, answer_, lost_); }

}  // namespace baton::server
