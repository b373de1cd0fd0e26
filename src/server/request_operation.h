// The plain kind of operation: some requests, known from the start, and a reply made of their answers.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "server/desk.h"

namespace baton::server {

class RequestOperation : public Operation {
 public:
  template <class Asked>
  explicit RequestOperation(Asked&& request) : request_(std::forward<Asked>(request)) {}

  void begin(Desk& desk) override { desk.ask(*this, 0, request_); }
  void answered(Desk&, std::size_t, engine::Answer&& answer) override { answer_ = std::move(answer); }
  void write(ReplyWriter& reply) override;

 private:
  core::Request request_;
  engine::Answer answer_;
};

class ManyRequestsOperation : public Operation {
 public:
  explicit ManyRequestsOperation(std::vector<core::Request> requests) : requests_(std::move(requests)) {}

  void begin(Desk& desk) override;
  void answered(Desk&, std::size_t index, engine::Answer&& answer) override {
    answers_[index] = std::move(answer);
  }
  void write(ReplyWriter& reply) override;  // a list of what each alone would reply
  std::size_t weight() const override { return std::max<std::size_t>(requests_.size(), 1); }

 private:
  std::vector<core::Request> requests_;
  std::vector<engine::Answer> answers_;
};

// The reply to one request, with news of leases that were lost, if there are any.
void write_answer(ReplyWriter& reply, const engine::Answer& answer, std::span<const HeldLease> lost = {});
void write_lost(ReplyWriter& reply, std::span<const HeldLease> lost);

}  // namespace baton::server
