// Watches the coordinator decide: keeps the ledger, asks history and the reference model about every entry,
// and says what each request should have come to.
#pragma once

#include <optional>

#include "core/decision.h"
#include "core/worker/worker_registry.h"
#include "tests/model/reference_model.h"
#include "tests/sim/history.h"
#include "tests/sim/ledger.h"
#include "tests/sim/stream_history.h"

namespace baton::sim {

struct ExpectedReply {
  std::optional<core::Reply> reply;
  std::optional<Errc> refusal;
};

class Witness {
 public:
  // From here on entries belong to this request, or (nullptr) to time passing.
  void deciding(const core::Request* request, const core::WorkerRegistry* workers);
  // An entry was recorded and applied. `expecting` is false for what only housekeeping and starting record.
  void entry(const core::Event& event, const core::Stamp& stamp, const core::State& state,
             const core::Rules& rules);
  // The request was handled; what the answer has to be.
  ExpectedReply expected(const core::Moment& at);

  // A process has recovered: what it found has to be a prefix of the ledger that holds all that was told.
  // The ledger ends there from now on.
  void recovered(const core::State& state, Lsn acknowledged, bool loss_is_legal);

  const Ledger& ledger() const { return ledger_; }
  const History& history() const { return now_.history; }
  const model::ReferenceModel& model() const { return now_.model; }
  const StreamHistory& streams() const { return now_.streams; }
  // I7, I21, and that the model and the state are the same, for everything.
  void compare_all(const core::State& state) const;

 private:
  struct Views {
    model::ReferenceModel model;
    History history;
    StreamHistory streams;
  };
  void observe(const core::Event& event, const core::Stamp& stamp);
  void observe_streams(const core::Event& event, const core::Stamp& stamp);
  void judge(const core::Event& event, const core::Stamp& stamp, const core::Rules& rules);

  Ledger ledger_;
  Views now_;
  Views at_start_;  // of the process
  const core::Request* request_ = nullptr;
  const core::WorkerRegistry* workers_ = nullptr;
  bool decided_ = false;
  ExpectedReply expected_;
};

// Nothing if the answer is the expected one.
std::optional<std::string> difference(const ExpectedReply& expected, const Result<core::Reply>& actual);

}  // namespace baton::sim
