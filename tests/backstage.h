// For tests: sessions on a real authority, without sockets. Time passes as it does; nothing sleeps, for the
// authority is driven until what is expected has come.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/authority.h"
#include "server/desk.h"
#include "server/resp_session.h"
#include "tests/temporary_directory.h"

namespace baton::server {

class Backstage {
 public:
  explicit Backstage(CoordinatorOptions options = {}, const ServerLimits& limits = {}) {
    options.log.segment_bytes = std::uint64_t{4} << 20;  // made in no time
    options.engine.observer = [this](const core::Event& event, const core::Stamp& stamp) {
      if (desk_) desk_->recorded(event, stamp);
    };
    authority = engine::Authority::open(directory_.path() + "/data", options, [this] { post({}); }).value();
    reader_ = std::make_unique<Reader>([this](const core::BlobRef& blob) { return read(blob); },
                                       [this](std::function<void()> done) { post(std::move(done)); });
    desk_ = std::make_unique<Desk>(*authority, *reader_, limits);
  }
  ~Backstage() {
    reader_.reset();
    syncer_.reset();
  }

  // The segment of what is read from the disk next has gone, as if it had been copied forward meanwhile.
  void lose_next_segment() { ++lost_segments_; }

  Desk& desk() { return *desk_; }
  std::string log_directory() const { return directory_.path() + "/data/wal"; }
  void audit_to(Audit& audit) {
    syncer_ = std::make_unique<Syncer>([this](std::function<void()> done) { post(std::move(done)); });
    desk_->audit_to(audit, *syncer_);
  }

  // One round of what the server's loop does; what comes in `within` it is decided on the spot.
  void turn(const std::function<void()>& within = {}) {
    bool quiet = false;
    std::vector<std::function<void()>> posted;
    {
      std::unique_lock lock(mutex_);
      const Duration wait = std::min(authority->wait(), desk_->wait());
      quiet = !wakes_.wait_for(lock, std::chrono::milliseconds(wait.ms), [&] { return !posted_.empty(); });
      posted.swap(posted_);
    }
    for (const auto& done : posted) {
      if (done) done();
    }
    authority->begin_turn(quiet);
    if (within) within();
    ASSERT_TRUE(authority->end_turn());
    desk_->tick();
  }
  template <class Condition>
  void drive_until(Condition condition) {
    while (!condition()) turn();
  }

 private:
  Result<Bytes> read(const core::BlobRef& blob) {
    if (lost_segments_ == 0) return authority->read(blob);
    --lost_segments_;
    return failure(Errc::not_found, "the log no longer holds it");
  }
  void post(std::function<void()> done) {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(done));
    }
    wakes_.notify_one();
  }

  TemporaryDirectory directory_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::vector<std::function<void()>> posted_;
  std::atomic<int> lost_segments_ = 0;

 public:
  std::unique_ptr<engine::Authority> authority;
  Access access = Access::open_to_all();

 private:
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<Syncer> syncer_;
  std::unique_ptr<Desk> desk_;
};

// A client of such a session that says lines and hears replies in version 2, one string each.
class Client {
 public:
  explicit Client(Backstage& stage) : stage_(stage), session(stage.desk(), stage.access, [] {}) {}

  void send(const std::vector<std::string>& words) {
    std::string text;
    wire::RespWriter writer(text);
    writer.array(words.size());
    for (const std::string& word : words) writer.bulk(std::string_view(word));
    session.receive(text);
  }
  // Everything that comes until nothing is under way, with "\r\n" as spaces.
  std::string hear() {
    stage_.drive_until([&] {
      session.resume();
      return session.is_idle();
    });
    std::string heard = std::exchange(session.output(), {});
    for (std::size_t at; (at = heard.find("\r\n")) != std::string::npos;) heard.replace(at, 2, " ");
    return heard;
  }
  std::string ask(const std::vector<std::string>& words) {
    send(words);
    return hear();
  }

 private:
  Backstage& stage_;

 public:
  RespSession session;
};

// The value that follows `name` in a reply of version 2.
inline std::string member(const std::string& reply, const std::string& name) {
  const std::size_t at = reply.find(" " + name + " ");
  if (at == std::string::npos) return "";
  std::size_t begin = at + name.size() + 2;
  if (reply[begin] == '$') begin = reply.find(' ', begin) + 1;
  if (reply[begin] == ':') ++begin;
  return reply.substr(begin, reply.find(' ', begin) - begin);
}

}  // namespace baton::server
