// A call about streams: asked as one request, its work fetched from the log where it is not at hand; waits
// for work if there is none and the instance wants to.
#pragma once

#include <string>
#include <vector>

#include "engine/work_calls.h"
#include "server/desk.h"

namespace baton::server {

// Messages that were handed out, with their texts.
class GivenWork {
 public:
  GivenWork(std::string ns, stream::InstanceId instance) : ns_(std::move(ns)), instance_(instance) {}

  void take(std::vector<core::GivenMessage> given, std::vector<engine::SharedBytes> bodies = {});
  // What is not at hand is read; its place among the call-backs says whose it is.
  void fetch(Desk& desk, Operation& operation) const;
  // What cannot be read is left out, and reported on.
  void fetched(Desk& desk, Operation& operation, std::size_t index, Result<Bytes> bytes);
  void write(ReplyWriter& reply) const;
  core::ByLane<std::vector<stream::Completion>> given_back() const;
  bool empty() const { return given_.empty(); }
  core::Lsn claim() const { return given_.front().epoch; }

 private:
  struct Read {
    engine::SharedBytes body;
    engine::SharedBytes error;
  };

  const std::string ns_;
  const stream::InstanceId instance_;
  std::vector<core::GivenMessage> given_;
  std::vector<Read> read_;         // of each
  std::vector<bool> is_left_out_;  // likewise
};

class StreamOperation final : public Operation {
 public:
  explicit StreamOperation(core::ProcessWork call, Duration wait = {})
      : ns_(call.ns),
        instance_(call.instance),
        claim_(call.claim),
        call_(std::move(call)),
        wait_(wait),
        work_(ns_, instance_) {}

  void begin(Desk& desk) override;
  void answered(Desk& desk, std::size_t index, engine::Answer&& answer) override;
  void fetched(Desk& desk, std::size_t index, Result<Bytes> bytes) override;
  void wake(Desk& desk, bool time_is_up) override;
  void abandoned(Desk& desk) override;
  void write(ReplyWriter& reply) override;
  std::size_t weight() const override { return 512; }
  bool is_blocking() const override { return wait_ > Duration{}; }

 private:
  const std::string ns_;
  const stream::InstanceId instance_;
  const std::optional<stream::ClaimRequest> claim_;  // asked again while it waits
  core::ProcessWork call_;                           // used up when it begins
  const Duration wait_;
  std::optional<Instant> deadline_;
  Instant asked_at_;
  core::Lsn lsn_ = 0;
  std::optional<Error> error_;
  core::WorkProcessed processed_;  // of the first try, with the work of the last
  GivenWork work_;
  bool is_again_ = false;
};

// Until there is something to claim that was not there a while ago.
class StreamWaitOperation final : public Operation {
 public:
  StreamWaitOperation(std::string ns, stream::InstanceId instance, Duration since, Duration wait)
      : ns_(std::move(ns)), instance_(instance), ago_(since), wait_(wait) {}

  void begin(Desk& desk) override;
  void look(engine::Engine& engine) override;
  void looked(Desk& desk) override;
  void wake(Desk& desk, bool time_is_up) override;
  void write(ReplyWriter& reply) override;
  bool is_blocking() const override { return wait_ > Duration{}; }

 private:
  const std::string ns_;
  const stream::InstanceId instance_;
  const Duration ago_;
  const Duration wait_;
  Instant since_;
  Instant looked_at_;
  Instant deadline_;
  bool time_is_up_ = false;
  bool has_news_ = false;
  std::optional<Error> error_;
  core::Lsn lsn_ = 0;
};

// A page of what an instance holds, to be taken up again.
class ResumeOperation final : public Operation {
 public:
  static constexpr std::size_t kMessagesMax = 1000;
  static constexpr std::size_t kBytesMax = std::size_t{8} << 20;

  ResumeOperation(std::string ns, stream::InstanceId instance, std::uint64_t cursor)
      : ns_(std::move(ns)), instance_(instance), cursor_(cursor), work_(ns_, instance_) {}

  void begin(Desk& desk) override { desk.look(*this); }
  void look(engine::Engine& engine) override;
  void looked(Desk& desk) override;
  void fetched(Desk& desk, std::size_t index, Result<Bytes> bytes) override;
  void write(ReplyWriter& reply) override;
  std::size_t weight() const override { return 512; }

 private:
  const std::string ns_;
  const stream::InstanceId instance_;
  std::uint64_t cursor_;  // and then where the next page goes on
  core::Lsn lsn_ = 0;
  std::optional<Error> error_;
  GivenWork work_;
};

}  // namespace baton::server
