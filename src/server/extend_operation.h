// EXTEND and EXTENDMANY: whoever extends a lease is told from then on if it is lost, and hears with the reply
// what he has not been told yet.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/desk.h"

namespace baton::server {

class ExtendOperation final : public Operation {
 public:
  ExtendOperation(std::string ns, std::vector<core::ExtendLease> items, bool is_many)
      : ns_(std::move(ns)), items_(std::move(items)), is_many_(is_many) {}

  void begin(Desk& desk) override;
  void answered(Desk& desk, std::size_t, engine::Answer&& answer) override;
  void write(ReplyWriter& reply) override;

 private:
  const std::string ns_;
  const std::vector<core::ExtendLease> items_;
  const bool is_many_;  // each has an outcome of its own
  engine::Answer answer_;
  std::vector<HeldLease> lost_;
};

}  // namespace baton::server
