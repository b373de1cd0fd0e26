#include "tests/sim/sim_log.h"

#include "base/check.h"

namespace baton::sim {

void SimLog::start_flush() {
  if (done_) writer_->finish(std::move(*done_));
  done_.reset();
  if (error_) return;
  if (auto flush = writer_->begin_flush()) {
    BATON_CHECK(!in_flight_);
    in_flight_ = std::move(flush);
  }
}

bool SimLog::perform() {
  BATON_CHECK(in_flight_.has_value());
  const Status done = writer_->perform(*in_flight_);
  if (!done) {
    error_ = done.error();
    in_flight_.reset();
    return false;
  }
  durable_ = in_flight_->last;
  done_ = std::move(in_flight_);
  in_flight_.reset();
  return true;
}

Status SimLog::failure() const {
  if (error_) return std::unexpected(*error_);
  return {};
}

}  // namespace baton::sim
