#include "checkpoint/in_process_collective.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "checkpoint/rank_list.h"

namespace baton::checkpoint {
namespace {

using Clock = std::chrono::steady_clock;

// Operations that ended badly wait for the ranks that have not come yet; one that never comes must not make
// them pile up.
constexpr std::size_t kEndedMax = 1024;

std::int64_t ms_since(Clock::time_point then) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then).count();
}

// An operation while ranks come to it, and its end until all of them have heard of it.
struct Meeting {
  Operation operation;  // of the rank that came first
  Clock::time_point began = Clock::now();
  std::map<Rank, Bytes> brought;
  std::set<Rank> heard;
  int waiting = 0;  // ranks that are about to hear of its end
  std::optional<Error> trouble;
  bool is_complete = false;

  bool has_ended() const { return is_complete || trouble; }
  void fail(Error error) {
    if (!has_ended()) trouble = std::move(error);
    brought.clear();
  }
};

struct Place {
  bool has_joined = false;
  bool has_left = false;
  std::string last_at;
  Clock::time_point last_seen;
  std::string doing;
};

struct Stream {
  std::deque<Meeting> meetings;
  std::uint64_t first = 0;             // the number of the front one
  std::map<Rank, std::uint64_t> next;  // the number of each rank's next operation
};

std::string title(const Operation& operation) {
  const bool rooted = operation.kind == OperationKind::broadcast || operation.kind == OperationKind::gather;
  return fmt::format("{} \"{}\"{}", word(operation.kind), operation.name,
                     rooted ? fmt::format(" with root {}", operation.root) : "");
}

}  // namespace

struct InProcessGroup::State {
  explicit State(Rank world) : world_size(world), places(world) {}

  const Rank world_size;
  std::mutex mutex;
  std::condition_variable_any changed;
  std::uint64_t generation = 1;
  std::string why_it_ended;  // the generation before
  std::vector<Place> places;
  std::map<std::string, Stream> streams;

  void begin_generation(Rank because_of) {
    why_it_ended = fmt::format("rank {} joined again", because_of);
    ++generation;
    places.assign(world_size, {});
    streams.clear();
    changed.notify_all();
  }

  Error fenced(std::uint64_t older) const {
    return {Errc::lease_lost, fmt::format("generation {} is over, because {}; join generation {}", older,
                                          why_it_ended, generation)};
  }

  std::string whereabouts(Rank rank) const {
    const Place& place = places[rank];
    if (!place.has_joined) return fmt::format("rank {} (has not joined)", rank);
    if (place.has_left)
      return fmt::format("rank {} (dead: it left {} ms ago)", rank, ms_since(place.last_seen));
    std::string text = fmt::format("rank {} (slow: ", rank);
    text += place.last_at.empty()
                ? "has been at no operation yet"
                : fmt::format("last at {}, {} ms ago", place.last_at, ms_since(place.last_seen));
    if (!place.doing.empty()) text += ", doing " + place.doing;
    return text + ")";
  }

  std::vector<Rank> missing_at(const Meeting& meeting) const {
    std::vector<Rank> missing;
    for (Rank rank = 0; rank < world_size; ++rank)
      if (!meeting.brought.contains(rank)) missing.push_back(rank);
    return missing;
  }

  Error timed_out(const Meeting& meeting, Rank whose, Duration deadline) const {
    std::string absent;
    for (const Rank rank : missing_at(meeting)) absent += (absent.empty() ? "" : ", ") + whereabouts(rank);
    return {Errc::deadline_exceeded,
            fmt::format("{}: {} of {} ranks came before the {} ms of rank {} were over; missing: {}",
                        title(meeting.operation), meeting.brought.size(), world_size, deadline.ms, whose,
                        absent)};
  }

  // Whoever is gone will not come.
  void note_the_gone(Stream& stream) {
    for (Meeting& meeting : stream.meetings) {
      if (meeting.has_ended()) continue;
      for (const Rank rank : missing_at(meeting)) {
        if (!places[rank].has_left) continue;
        meeting.fail({Errc::unavailable, fmt::format("{}: rank {} is gone: it left before it came",
                                                     title(meeting.operation), rank)});
        break;
      }
    }
  }

  void leave(Rank rank, std::uint64_t of_generation) {
    const std::lock_guard lock(mutex);
    if (of_generation != generation) return;
    places[rank].has_left = true;
    places[rank].last_seen = Clock::now();
    for (auto& [name, stream] : streams) note_the_gone(stream);
    changed.notify_all();
  }
};

namespace {

class InProcessCollective final : public Collective {
 public:
  InProcessCollective(std::shared_ptr<InProcessGroup::State> group, Rank rank, std::uint64_t generation,
                      std::string stream)
      : group_(std::move(group)), rank_(rank), generation_(generation), stream_(std::move(stream)) {}
  ~InProcessCollective() override {
    if (stream_.empty()) group_->leave(rank_, generation_);
  }

  Rank rank() const override { return rank_; }
  Rank world_size() const override { return group_->world_size; }
  std::uint64_t generation() const override { return generation_; }

  void tell_doing(std::string_view doing) override {
    const std::lock_guard lock(group_->mutex);
    if (generation_ == group_->generation) group_->places[rank_].doing = doing;
  }

  Result<std::unique_ptr<Collective>> stream(const std::string& name) override {
    if (name.empty()) return failure(Errc::invalid_request, "a stream has a name");
    const std::lock_guard lock(group_->mutex);
    if (generation_ != group_->generation) return std::unexpected(group_->fenced(generation_));
    return std::make_unique<InProcessCollective>(group_, rank_, generation_, name);
  }

 protected:
  Result<std::vector<Bytes>> meet(const Operation& operation, const Contribution& mine,
                                  const Call& call) override {
    std::unique_lock lock(group_->mutex);
    if (generation_ != group_->generation) return std::unexpected(group_->fenced(generation_));
    const std::uint64_t number = here().next[rank_]++;
    if (auto here = arrive(number, operation, mine); !here) return std::unexpected(here.error());
    group_->changed.notify_all();
    ++meeting(number).waiting;

    const auto deadline = Clock::now() + std::chrono::milliseconds(call.deadline.ms);
    const auto ended = [&] { return generation_ != group_->generation || meeting(number).has_ended(); };
    if (!group_->changed.wait_until(lock, call.stop, deadline, ended)) {
      Meeting& vain = meeting(number);
      vain.fail(call.stop.stop_requested()
                    ? Error{Errc::closed,
                            fmt::format("{}: rank {} was stopped while it waited", title(operation), rank_)}
                    : group_->timed_out(vain, rank_, call.deadline));
      group_->changed.notify_all();
    }
    if (generation_ != group_->generation) return std::unexpected(group_->fenced(generation_));
    return take(number);
  }

 private:
  Stream& here() { return group_->streams[stream_]; }
  Meeting& meeting(std::uint64_t number) { return here().meetings[number - here().first]; }

  Status arrive(std::uint64_t number, const Operation& operation, const Contribution& mine) {
    Stream& all = here();
    if (number < all.first)
      return failure(Errc::deadline_exceeded,
                     fmt::format("{}: it ended long ago, without this rank", title(operation)));
    if (number == all.first + all.meetings.size()) all.meetings.push_back({.operation = operation});
    if (all.meetings.size() > kEndedMax && all.meetings.front().has_ended() &&
        all.meetings.front().waiting == 0) {
      all.meetings.pop_front();
      ++all.first;
    }
    Place& place = group_->places[rank_];
    place.last_at = title(operation);
    place.last_seen = Clock::now();

    Meeting& meeting = all.meetings[number - all.first];
    if (meeting.has_ended()) return {};
    if (operation != meeting.operation) {
      std::vector<Rank> others;
      others.reserve(meeting.brought.size());
      for (const auto& [rank, bytes] : meeting.brought) others.push_back(rank);
      meeting.fail({Errc::conflict, fmt::format("{} {} at {}, and rank {} is at {}", rank_list(others),
                                                others.size() == 1 ? "is" : "are", title(meeting.operation),
                                                rank_, title(operation))});
      return {};
    }
    if (!mine) {
      meeting.fail({mine.error().code, fmt::format("rank {}: {}", rank_, mine.error().message)});
      return {};
    }
    meeting.brought.emplace(rank_, Bytes(mine->begin(), mine->end()));
    meeting.is_complete = meeting.brought.size() == group_->world_size;
    group_->note_the_gone(all);
    return {};
  }

  Result<std::vector<Bytes>> take(std::uint64_t number) {
    Meeting& ended = meeting(number);
    --ended.waiting;
    Result<std::vector<Bytes>> got;
    if (ended.trouble) {
      got = std::unexpected(*ended.trouble);
    } else {
      got = share_of(ended);
    }
    ended.heard.insert(rank_);
    Stream& all = here();
    while (!all.meetings.empty() && all.meetings.front().heard.size() == group_->world_size) {
      all.meetings.pop_front();
      ++all.first;
    }
    return got;
  }

  std::vector<Bytes> share_of(const Meeting& meeting) const {
    const Operation& operation = meeting.operation;
    std::vector<Bytes> share;
    if (operation.kind == OperationKind::broadcast) share.push_back(meeting.brought.at(operation.root));
    if (operation.kind == OperationKind::all_gather ||
        (operation.kind == OperationKind::gather && operation.root == rank_)) {
      for (const auto& [rank, bytes] : meeting.brought) share.push_back(bytes);
    }
    return share;
  }

  const std::shared_ptr<InProcessGroup::State> group_;
  const Rank rank_;
  const std::uint64_t generation_;
  const std::string stream_;  // "" is the one that a rank joins with
};

}  // namespace

InProcessGroup::InProcessGroup(Rank world_size) : state_(std::make_shared<State>(world_size)) {}
InProcessGroup::~InProcessGroup() = default;

Result<std::unique_ptr<Collective>> InProcessGroup::join(Rank rank) {
  const std::lock_guard lock(state_->mutex);
  if (rank >= state_->world_size)
    return failure(Errc::invalid_request,
                   fmt::format("there is no rank {} in a group of {}", rank, state_->world_size));
  if (state_->places[rank].has_joined) state_->begin_generation(rank);
  state_->places[rank].has_joined = true;
  state_->places[rank].last_seen = Clock::now();
  return std::make_unique<InProcessCollective>(state_, rank, state_->generation, "");
}

}  // namespace baton::checkpoint
