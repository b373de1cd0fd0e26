// The log with its flusher under the scheduler's control: a flush is in flight from start_flush() until the
// scheduler calls perform(). The writer and all that it does on the disk are those of production.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "log/log.h"
#include "log/writer.h"

namespace baton::sim {

class SimLog final : public log::Log {
 public:
  explicit SimLog(std::unique_ptr<log::LogWriter> writer)
      : writer_(std::move(writer)), durable_(writer_->durable()) {}

  bool has_room() const override { return writer_->has_room(); }
  log::Place append(std::uint16_t type, Instant time, ByteView body) override {
    return writer_->append(type, time, body);
  }
  void start_flush() override;
  log::Lsn last() const override { return writer_->last(); }
  log::Lsn durable() const override { return durable_; }
  Status failure() const override;
  log::Headroom headroom() const override {
    return {.left_in_segment = writer_->left_in_segment(),
            .can_rotate = !writer_->successor().last_attempt_failed()};
  }
  void prepare_rotation() override { wants_successor_ = true; }
  bool end_segment() override { return writer_->end_segment(); }

  bool is_flushing() const { return in_flight_.has_value(); }
  bool take_wish_for_successor() { return std::exchange(wants_successor_, false); }
  // What the flusher's thread does. True if everything in the flush is durable now.
  bool perform();
  log::LogWriter& writer() { return *writer_; }

 private:
  std::unique_ptr<log::LogWriter> writer_;
  std::optional<log::Flush> in_flight_;
  std::optional<log::Flush> done_;
  std::optional<Error> error_;
  log::Lsn durable_;
  bool wants_successor_ = false;
};

}  // namespace baton::sim
