#include "base/check.h"
#include "engine/work_coordinator.h"
#include "tests/stream/backend.h"
#include "tests/stream/moved_clock.h"
#include "tests/temporary_directory.h"

namespace baton::stream {
namespace {

class EmbeddedBackend final : public Backend {
 public:
  EmbeddedBackend() {
    auto opened = Coordinator::open(directory_.path(), {.clock = &clock_});
    BATON_CHECK(opened);
    coordinator_ = std::move(*opened);
  }
  std::unique_ptr<WorkCoordinator> connect() override {
    return std::make_unique<engine::WorkCoordinator>(*coordinator_);
  }
  void let_time_pass(Duration duration) override { clock_.move(duration); }
  int replay_dead_letters() override { return count_of(core::ReplayLetters{.ns = "default"}); }
  int purge_dead_letters() override { return count_of(core::PurgeLetters{.ns = "default"}); }

 private:
  int count_of(core::Request request) {
    auto answer = coordinator_->answer_to(std::move(request));
    BATON_CHECK(answer && answer->reply);
    return static_cast<int>(std::get<core::Purged>(*answer->reply).count);
  }

  TemporaryDirectory directory_;
  MovedClock clock_;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace

BackendKind embedded_backend() {
  return {"Embedded", [] { return std::make_unique<EmbeddedBackend>(); }};
}

}  // namespace baton::stream
