#include "server/request_operation.h"

namespace baton::server {
namespace {

struct Writer {
  ReplyWriter& reply;
  core::Lsn lsn;
  std::span<const HeldLease> lost;

  void begin(std::size_t members) const {
    reply.map(members + 1 + (lost.empty() ? 0 : 1));
    reply.member("lsn", lsn);
    if (!lost.empty()) write_lost(reply, lost);
  }

  void operator()(const core::Submitted& submitted) const {
    begin(2);
    reply.member("task", core::to_text(submitted.task));
    reply.name("existed");
    reply.boolean(submitted.existed);
  }
  void operator()(const core::Extended& extended) const {
    begin(1);
    reply.member("ttl_ms", static_cast<std::uint64_t>(extended.ttl.ms));
  }
  void operator()(const core::ExtendedMany& many) const {
    begin(1);
    reply.name("leases");
    reply.list(many.items.size());
    for (const auto& item : many.items) {
      if (!item) {
        reply.error(item.error());
        continue;
      }
      reply.map(1);
      reply.member("ttl_ms", static_cast<std::uint64_t>(item->ttl.ms));
    }
  }
  void operator()(const core::Committed& committed) const {
    const bool again =
        committed.outcome == core::Ended::retried || committed.outcome == core::Ended::released;
    begin(again ? 3 : 2);
    reply.member("status", "COMMITTED");
    reply.member("outcome", core::name_of(committed.outcome));
    if (again) reply.member("retry_at", static_cast<std::uint64_t>(committed.retry_at.ms));
  }
  void operator()(const core::Cancelled&) const {
    begin(1);
    reply.member("status", "CANCELLED");
  }
  void operator()(const core::Accepted&) const {
    begin(1);
    reply.member("status", "COMMITTED");
  }
  void operator()(const core::Purged& purged) const {
    begin(purged.last_letter ? 2 : 1);
    reply.member("purged", purged.count);
    if (purged.last_letter) reply.member("last_letter", *purged.last_letter);
  }
  // Grants are written by the operation that fetches their payloads.
  void operator()(const core::Granted&) const { begin(0); }
  void operator()(const core::Nothing&) const { begin(0); }
  // Likewise work of streams.
  void operator()(const core::WorkProcessed&) const { begin(0); }
};

}  // namespace

void write_lost(ReplyWriter& reply, std::span<const HeldLease> lost) {
  reply.name("lost");
  reply.list(lost.size());
  for (const HeldLease& one : lost) {
    reply.map(2);
    reply.member("task", core::to_text(one.task));
    reply.member("lease", core::to_text(one.lease));
  }
}

void write_answer(ReplyWriter& reply, const engine::Answer& answer, std::span<const HeldLease> lost) {
  if (!answer.reply) return reply.error(answer.reply.error());
  std::visit(Writer{reply, answer.lsn, lost}, *answer.reply);
}

void RequestOperation::write(ReplyWriter& reply) { write_answer(reply, answer_); }

void ManyRequestsOperation::begin(Desk& desk) {
  answers_.resize(requests_.size());
  for (std::size_t index = 0; index < requests_.size(); ++index) desk.ask(*this, index, requests_[index]);
}

void ManyRequestsOperation::write(ReplyWriter& reply) {
  reply.list(answers_.size());
  for (const engine::Answer& answer : answers_) write_answer(reply, answer);
}

}  // namespace baton::server
