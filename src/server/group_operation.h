// Calls of ranks: a word with a group that is answered at once, and two that wait in it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "server/desk.h"

namespace baton::server {

// What a group has to say: the members of the reply behind "lsn".
struct GroupReply {
  std::size_t members = 0;
  std::function<void(ReplyWriter&)> write;
};

// Joins, resumes, leaves, stops.
class GroupOperation : public Operation {
 public:
  using Said = GroupReply;
  using Call = std::function<Result<Said>(Groups& groups, Instant now)>;
  // `ranks` that it may begin a generation of.
  explicit GroupOperation(Call call, group::Rank ranks = 0) : call_(std::move(call)), ranks_(ranks) {}

  void begin(Desk& desk) override;
  void write(ReplyWriter& reply) override;
  std::size_t weight() const override { return 64 + ranks_ / 16; }

 protected:
  void call(Groups& groups, core::Lsn lsn, Instant now);

 private:
  const Call call_;
  const group::Rank ranks_;
  core::Lsn lsn_ = 0;
  Result<Said> said_;
};

// Asks who is there. Very many may be named, so it stands in line with other questions.
class GroupQuestion final : public GroupOperation {
 public:
  using GroupOperation::GroupOperation;
  void begin(Desk& desk) override;
  void look(engine::Engine& engine) override;
  std::size_t weight() const override { return 4096; }

 private:
  Groups* groups_ = nullptr;
};

class MeetOperation final : public Operation {
 public:
  MeetOperation(Groups::Name name, group::Seat seat, group::Arrival arrival)
      : name_(std::move(name)), seat_(std::move(seat)), arrival_(std::move(arrival)) {}

  void begin(Desk& desk) override;
  void met(Desk& desk, Result<group::Share> outcome) override;
  void write(ReplyWriter& reply) override;
  bool is_blocking() const override { return true; }

 private:
  const Groups::Name name_;
  const group::Seat seat_;
  group::Arrival arrival_;
  core::Lsn lsn_ = 0;
  Status begun_;  // or refused
  Result<group::Share> outcome_;
};

// Says that a rank is alive, again and again, on a connection that is heard to break when its process ends.
class WatchOperation final : public Operation {
 public:
  WatchOperation(Groups::Name name, group::Seat seat, std::optional<std::string> doing, Duration wait)
      : name_(std::move(name)), seat_(std::move(seat)), doing_(std::move(doing)), wait_(wait) {}

  void begin(Desk& desk) override;
  void met(Desk& desk, Result<group::Share> outcome) override;
  void write(ReplyWriter& reply) override;
  bool is_blocking() const override { return true; }

 private:
  const Groups::Name name_;
  const group::Seat seat_;
  const std::optional<std::string> doing_;
  const Duration wait_;
  core::Lsn lsn_ = 0;
  Status begun_;            // or refused, or the generation ended
  std::string waited_for_;  // who has been missing at an operation for long
};

}  // namespace baton::server
