#include <liburing.h>

#include "base/check.h"
#include "checkpoint/io_engine.h"

namespace baton::checkpoint {
namespace {

class RingEngine final : public IoEngine {
 public:
  explicit RingEngine(const io_uring& ring) : ring_(ring) {}
  ~RingEngine() override { io_uring_queue_exit(&ring_); }
  RingEngine(const RingEngine&) = delete;
  RingEngine& operator=(const RingEngine&) = delete;

  void submit(const Transfer& transfer) override {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    BATON_CHECK(entry != nullptr);  // the caller keeps to kTransfersMax
    const auto bytes = static_cast<unsigned>(transfer.bytes);
    if (transfer.direction == Transfer::Direction::write) {
      io_uring_prep_write(entry, transfer.descriptor, transfer.memory, bytes, transfer.offset);
    } else {
      io_uring_prep_read(entry, transfer.descriptor, transfer.memory, bytes, transfer.offset);
    }
    // Carried out by threads of the kernel: setting up a transfer takes the processor a while, in which
    // ours can prepare the next one.
    io_uring_sqe_set_flags(entry, IOSQE_ASYNC);
    io_uring_sqe_set_data64(entry, transfer.tag);
    int submitted = 0;
    do submitted = io_uring_submit(&ring_);
    while (submitted == -EINTR || submitted == -EAGAIN);
    BATON_CHECK(submitted >= 0);
  }

  Completion wait() override {
    io_uring_cqe* entry = nullptr;
    int waited = 0;
    do waited = io_uring_wait_cqe(&ring_, &entry);
    while (waited == -EINTR);
    BATON_CHECK(waited == 0);
    const Completion completion{static_cast<std::size_t>(entry->user_data), entry->res};
    io_uring_cqe_seen(&ring_, entry);
    return completion;
  }

 private:
  io_uring ring_;
};

}  // namespace

std::unique_ptr<IoEngine> ring_engine() {
#ifdef __SANITIZE_THREAD__
  return nullptr;  // a ring is mapped behind its back, so it takes two at the same address for one
#endif
  io_uring ring{};
  if (io_uring_queue_init(kTransfersMax, &ring, 0) < 0) return nullptr;
  return std::make_unique<RingEngine>(ring);
}

}  // namespace baton::checkpoint
