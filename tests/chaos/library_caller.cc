#include <latch>

#include "client/client.h"
#include "tests/chaos/caller.h"
#include "wire/resp_value.h"

namespace baton::chaos {
namespace {

class LibraryCaller final : public Caller {
 public:
  explicit LibraryCaller(std::uint16_t port)
      : client_({.addresses = {"127.0.0.1:" + std::to_string(port)},
                 .deadline = kPatience,
                 .silence_max = milliseconds(300),
                 .backoff_min = milliseconds(5),
                 .backoff_max = milliseconds(50)}) {}

  Operation submit(const std::string& key) override { return submitted(key, client_.submit(task_of(key))); }

  std::vector<Operation> submit_all(const std::vector<std::string>& keys) override {
    std::vector<Operation> said(keys.size());
    std::latch unanswered(static_cast<std::ptrdiff_t>(keys.size() * (1 + kFillers)));
    for (std::size_t at = 0; at < keys.size(); ++at) {
      for (std::size_t count = 0; count < kFillers; ++count)
        client_.ask({"EXTEND", kNobodys.task, kNobodys.lease},
                    [&](const Result<wire::RespValue>&) { unanswered.count_down(); });
      client_.submit(task_of(keys[at]), [&, at](const Result<client::Submitted>& done) {
        said[at] = submitted(keys[at], done);
        said[at].returned_us = now_us();
        unanswered.count_down();
      });
    }
    unanswered.wait();
    return said;
  }

  Operation lease(const std::string& worker, Duration ttl, client::Held& held) override {
    const auto done =
        client_.lease({.worker = worker, .queues = {kQueue}, .ttl = ttl, .wait = milliseconds(100)});
    Operation o = outcome_of(Kind::lease, done);
    o.ttl_us = ttl.ms * 1000;
    held = {};
    if (!done || done->empty()) return o;
    held = done->front().held();
    o.attempt = done->front().attempt;
    name(o, held);
    o.lsn = o.lease;  // the client does not tell; the grant's own is the reply's
    return o;
  }

  Operation extend(const client::Held& held, Duration ttl) override {
    const auto done = client_.extend(held, ttl);
    Operation o = outcome_of(Kind::extend, done);
    o.ttl_us = ttl.ms * 1000;
    return name(o, held);
  }
  Operation complete(const client::Held& held) override {
    return settle(Kind::complete, held, client_.complete(held, "done"));
  }
  Operation fail(const client::Held& held) override {
    return settle(Kind::fail, held, client_.fail(held, {.reason = "as it happens"}));
  }

  Operation get(const std::string& key) override {
    const auto done = client_.get("key:" + key);
    Operation o = outcome_of(Kind::get, done);
    o.key = key;
    if (done) o.word = done->view.state, o.task = lsn_of(done->view.task);
    return o;
  }

 private:
  static client::Submit task_of(const std::string& key) {
    return {.queue = kQueue,
            .payload = "payload of " + key,
            .key = key,
            .options = {.max_failures = 1000,
                        .backoff = milliseconds(5),
                        .backoff_max = milliseconds(20),
                        .max_attempts = 100'000}};
  }
  static Operation submitted(const std::string& key, const Result<client::Submitted>& done) {
    Operation o = outcome_of(Kind::submit, done);
    o.key = key;
    if (done) o.task = lsn_of(done->task), o.existed = done->existed, o.lsn = done->lsn;
    return o;
  }
  static Operation& name(Operation& o, const client::Held& held) {
    o.task = lsn_of(held.task), o.lease = lsn_of(held.lease);
    return o;
  }
  static Operation settle(Kind kind, const client::Held& held, const Result<client::Verdict>& done) {
    Operation o = outcome_of(kind, done);
    if (done) o.word = done->cancelled ? "CANCELLED" : "COMMITTED", o.lsn = done->lsn;
    return name(o, held);
  }

  template <class T>
  static Operation outcome_of(Kind kind, const Result<T>& result) {
    Operation o{.kind = kind, .outcome = Outcome::done};
    if (result) return o;
    const Errc code = result.error().code;
    o.word = word(code);
    if (code == Errc::outcome_unknown) {
      o.outcome = Outcome::unknown;
    } else if (code == Errc::lease_lost || code == Errc::lease_unknown || code == Errc::conflict) {
      o.outcome = Outcome::refused;
    } else {
      o.outcome = Outcome::absent;
    }
    return o;
  }

  client::Client client_;
};

}  // namespace

std::unique_ptr<Caller> library_caller(std::uint16_t port) { return std::make_unique<LibraryCaller>(port); }

}  // namespace baton::chaos
