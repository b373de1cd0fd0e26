#include "checkpoint/server_collective.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include "base/pause.h"
#include "base/random_name.h"
#include "base/utf8.h"
#include "checkpoint/doing.h"
#include "client/direct_line.h"
#include "group/memory.h"
#include "wire/resp_value.h"

namespace baton::checkpoint {
namespace {

using Words = std::vector<std::string>;
using wire::RespValue;

constexpr Duration kReachedWithin = seconds(30);  // the coordinator, beyond what a call waits on purpose
constexpr Duration kGoodbye = seconds(2);
constexpr Duration kDeadlineMax = hours(24);  // that a coordinator takes
constexpr std::size_t kDoingBytesMax = 200;   // likewise

constexpr std::size_t kToldAgainMax = 512 << 10;  // bytes of a gathering, with those around them
constexpr std::size_t kAroundEach = 256;
constexpr std::size_t kSharesToldMax = 1500;  // two words each, and a command has 4000 at most

std::size_t bytes_in(const std::vector<Bytes>& share) {
  std::size_t sum = 0;
  for (const Bytes& each : share) sum += each.size() + kAroundEach;
  return sum;
}

// Beside what the rank brought, in one command. Otherwise a gathering is made again, of what each brought.
bool can_be_told_again(group::OperationKind kind, const std::vector<Bytes>& share) {
  return !group::gathers(kind) || (share.size() <= kSharesToldMax && bytes_in(share) <= kToldAgainMax);
}

std::string where_we_are() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("{}, pid {}", host, getpid());
}

// What all streams of a rank share: its place in the group, and what it has to say if that is forgotten.
class Session {
 public:
  explicit Session(const ServerCollectiveOptions& options)
      : options_(options), client_(options.client), incarnation_(random_name()), where_(where_we_are()) {}

  ~Session() {
    watcher_.request_stop();
    if (watcher_.joinable()) watcher_.join();
    if (generation_ != 0) (void)client_.ask(as_member("GROUP_LEAVE"), kGoodbye);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const ServerCollectiveOptions& options() const { return options_; }
  std::uint64_t generation() const { return generation_; }

  Status join() {
    const auto give_up =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.join_deadline.ms);
    for (;;) {
      const auto joined = client_.ask(joining("GROUP_JOIN", {}), options_.join_deadline);
      if (joined) {
        const RespValue* generation = joined->find("generation");
        if (generation == nullptr) return failure(Errc::unsupported_version, "GROUP_JOIN gave no generation");
        generation_ = static_cast<std::uint64_t>(generation->number);
        watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
        return {};
      }
      // Ranks of an older group may still have their places, or be about to join again.
      const bool may_change = joined.error().code == Errc::conflict;
      if (!may_change || std::chrono::steady_clock::now() >= give_up) return std::unexpected(joined.error());
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  // Rank, incarnation and generation, behind the verb and the group.
  Words as_member(std::string verb) const {
    return {std::move(verb), options_.group, std::to_string(options_.rank), incarnation_,
            std::to_string(generation_)};
  }

  // Of the next operation of a stream; one that is opened again goes on.
  std::uint64_t next(const std::string& stream) {
    const std::lock_guard lock(mutex_);
    stopped_.erase(stream);
    return memories_[stream].next();
  }

  void keep(group::Kept kept) {
    const std::lock_guard lock(mutex_);
    stopped_.erase(kept.stream);
    group::Memory& memory = memories_[kept.stream];
    memory.add(std::move(kept));
  }

  // The others are told; the call then ends as for them. A coordinator that does not know the group yet has
  // nobody to tell, so it is remembered for when it does.
  void stop(const std::string& stream, std::uint64_t number) {
    {
      const std::lock_guard lock(mutex_);
      stopped_[stream] = number;
    }
    tell_stopped(stream, number);
  }

  // The coordinator does not know the group: it has been started again.
  Status resume() {
    if (auto told = tell_kept(); !told) return told;
    std::map<std::string, std::uint64_t> stopped;
    {
      const std::lock_guard lock(mutex_);
      stopped = stopped_;
    }
    for (const auto& [stream, number] : stopped) tell_stopped(stream, number);
    return {};
  }

  // By the program, or by a save.
  void tell(std::string Doing::* who, std::string_view what) {
    Words words = as_member("GROUP_WATCH");
    const std::lock_guard lock(mutex_);  // also while it is sent, so that the last word is the last
    doing_.*who = what;
    const std::string doing = doing_.text();
    words.insert(words.end(), {"DOING", std::string(utf8_beginning(doing, kDoingBytesMax))});
    client_.ask(words, [](const Result<RespValue>&) {});
  }

 private:
  Status tell_kept() {
    std::vector<group::Kept> kept;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [stream, memory] : memories_)
        std::ranges::copy(memory.kept(), std::back_inserter(kept));
    }
    Words words = joining("GROUP_RESUME", {std::to_string(generation_)});
    if (kept.empty()) return said(words);
    for (const group::Kept& each : kept) {
      Words with = words;
      add(with, each);
      if (auto done = said(with); !done) return done;
    }
    return {};
  }

  void tell_stopped(const std::string& stream, std::uint64_t number) {
    Words words = as_member("GROUP_STOP");
    words.push_back(std::to_string(number));
    if (!stream.empty()) words.insert(words.end(), {"STREAM", stream});
    client_.ask(words, [](const Result<RespValue>&) {});
  }

  Words joining(std::string verb, const Words& more) const {
    Words words{std::move(verb), options_.group, std::to_string(options_.rank),
                std::to_string(options_.world_size), incarnation_};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"WHERE", where_, "TTL_MS", std::to_string(options_.time_to_live.ms)});
    return words;
  }

  static void add(Words& words, const group::Kept& kept) {
    words.insert(words.end(), {"NUMBER", std::to_string(kept.number), "KIND",
                               std::string(group::word(kept.operation.kind)), "NAME", kept.operation.name,
                               "ROOT", std::to_string(kept.operation.root)});
    if (!kept.stream.empty()) words.insert(words.end(), {"STREAM", kept.stream});
    if (kept.operation.kind != group::OperationKind::broadcast)  // which all know who know its end
      words.insert(words.end(), {"CONTRIBUTION", std::string(text_of(kept.contribution))});
    if (!kept.outcome) {
      words.insert(words.end(), {"ERROR_CODE", std::string(word(kept.outcome.error().code)), "ERROR",
                                 kept.outcome.error().message});
      return;
    }
    if (!can_be_told_again(kept.operation.kind, **kept.outcome)) return;
    for (const Bytes& bytes : **kept.outcome)
      words.insert(words.end(), {"SHARE", std::string(text_of(bytes))});
  }

  Status said(const Words& words) {
    const auto reply = client_.ask(words, kReachedWithin);
    if (!reply) return std::unexpected(reply.error());
    return {};
  }

  // Keeps the place alive. While it waits, the coordinator hears at once if this process ends.
  void watch(const std::stop_token& stop) {
    const Duration each{std::max<std::int64_t>(options_.time_to_live.ms / 3, 30)};
    while (!stop.stop_requested()) {
      const auto reply = client_.ask_and_wait(as_member("GROUP_WATCH"), each, stop, each);
      if (reply) {
        if (const RespValue* waited_for = reply->find("waited_for"))  // told to one rank, now and then
          std::fprintf(stderr, "baton: %s\n", waited_for->text.c_str());
        continue;
      }
      if (reply.error().code == Errc::lease_lost) return;  // whoever meets next hears of it
      if (reply.error().code == Errc::not_found && resume()) continue;
      pause(milliseconds(100), stop);
    }
  }

  const ServerCollectiveOptions options_;
  client::Client client_;
  const std::string incarnation_;
  const std::string where_;
  std::uint64_t generation_ = 0;
  std::mutex mutex_;
  std::map<std::string, group::Memory> memories_;  // by stream
  std::map<std::string, std::uint64_t> stopped_;   // likewise: the operation that is not to be waited for
  Doing doing_;
  std::jthread watcher_;
};

class ServerCollective final : public Collective {
 public:
  ServerCollective(std::shared_ptr<Session> session, std::string stream)
      : session_(std::move(session)), stream_(std::move(stream)), line_(session_->options().client) {}

  Rank rank() const override { return session_->options().rank; }
  Rank world_size() const override { return session_->options().world_size; }
  std::uint64_t generation() const override { return session_->generation(); }
  void tell_doing(std::string_view doing) override { session_->tell(&Doing::said, doing); }
  void tell_saving(std::string_view progress) override { session_->tell(&Doing::saving, progress); }

  Result<std::unique_ptr<Collective>> stream(const std::string& name) override {
    if (name.empty()) return failure(Errc::invalid_request, "a stream has a name");
    return std::make_unique<ServerCollective>(session_, name);
  }

 protected:
  Result<std::vector<Bytes>> meet(const Operation& operation, const Contribution& mine,
                                  const Call& call) override {
    const std::uint64_t number = session_->next(stream_);
    const std::stop_callback stopped(call.stop, [&] { session_->stop(stream_, number); });
    const Duration deadline = std::clamp(call.deadline, milliseconds(1), kDeadlineMax);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(deadline.ms);
    auto reply = line_.ask_and_wait(meeting(number, operation, mine), deadline, kReachedWithin);
    while (!reply && reply.error().code == Errc::not_found) {
      if (auto resumed = session_->resume(); !resumed) return std::unexpected(resumed.error());
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      reply = line_.ask_and_wait(meeting(number, operation, mine),
                                 Duration{std::max<std::int64_t>(left.count(), 1)}, kReachedWithin);
    }
    return ended(number, operation, mine, reply);
  }

 private:
  Words meeting(std::uint64_t number, const Operation& operation, const Contribution& mine) const {
    Words words = session_->as_member("GROUP_MEET");
    words.insert(words.end(), {std::to_string(number), std::string(group::word(operation.kind)),
                               operation.name, "ROOT", std::to_string(operation.root)});
    if (!stream_.empty()) words.insert(words.end(), {"STREAM", stream_});
    if (mine)
      words.insert(words.end(), {"CONTRIBUTION", std::string(text_of(*mine))});
    else
      words.insert(words.end(), {"ERROR_CODE", std::string(word(mine.error().code)), "ERROR",
                                 std::string(utf8_beginning(mine.error().message, group::kErrorBytesMax))});
    return words;
  }

  // Whoever was refused, or could not ask, is still at this operation, where the others wait for it.
  Result<std::vector<Bytes>> ended(std::uint64_t number, const Operation& operation, const Contribution& mine,
                                   const Result<RespValue>& reply) {
    if (!reply) return std::unexpected(in_words(operation, reply.error()));
    group::Kept kept{stream_, number, operation, {}, {}};
    if (mine) kept.contribution.assign(mine->begin(), mine->end());
    Result<std::vector<Bytes>> outcome = outcome_in(*reply);
    if (outcome)
      kept.outcome = std::make_shared<const std::vector<Bytes>>(*outcome);
    else
      kept.outcome = std::unexpected(outcome.error());
    session_->keep(std::move(kept));
    return outcome;
  }

  static Error in_words(const Operation& operation, const Error& error) {
    const bool unreachable = error.code == Errc::outcome_unknown || error.code == Errc::unavailable ||
                             error.code == Errc::deadline_exceeded || error.code == Errc::closed;
    if (!unreachable) return error;
    return {Errc::unavailable,
            fmt::format("{}: the coordinator cannot be reached: {}", group::title(operation), error.message),
            {}};
  }

  static Result<std::vector<Bytes>> outcome_in(const RespValue& reply) {
    if (const RespValue* code = reply.find("error_code")) {
      const RespValue* message = reply.find("error");
      return failure(code_of(code->text).value_or(Errc::io_failed), message == nullptr ? "" : message->text);
    }
    std::vector<Bytes> all;
    const RespValue* share = reply.find("share");
    if (share == nullptr)
      return failure(Errc::unsupported_version, "GROUP_MEET gave neither share nor error");
    for (const RespValue& item : share->items) {
      const RespValue* bytes = item.find("bytes");
      const ByteView view = bytes_of(bytes == nullptr ? std::string_view() : std::string_view(bytes->text));
      all.emplace_back(view.begin(), view.end());
    }
    return all;
  }

  const std::shared_ptr<Session> session_;
  const std::string stream_;
  client::DirectLine line_;  // every rank waits for the slowest, so no thread in between is to be woken
};

}  // namespace

Result<std::unique_ptr<Collective>> join_at_server(const ServerCollectiveOptions& options) {
  if (options.rank >= options.world_size)
    return failure(Errc::invalid_request,
                   fmt::format("there is no rank {} in a group of {}", options.rank, options.world_size));
  auto session = std::make_shared<Session>(options);
  if (auto joined = session->join(); !joined) return std::unexpected(joined.error());
  return std::make_unique<ServerCollective>(std::move(session), "");
}

}  // namespace baton::checkpoint
