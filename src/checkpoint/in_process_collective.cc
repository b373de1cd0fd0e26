#include "checkpoint/in_process_collective.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "checkpoint/doing.h"
#include "checkpoint/with_memory.h"
#include "group/group.h"

namespace baton::checkpoint {
namespace {

constexpr Duration kForEver = days(36'500);  // a thread does not fall silent

Instant now() {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(since_boot).count()};
}

}  // namespace

struct InProcessGroup::State {
  explicit State(Rank world) : world_size(world) {}

  const Rank world_size;
  std::mutex mutex;
  std::condition_variable_any changed;
  std::optional<group::Group> group;
  std::uint64_t incarnations = 0;
  // Of the next operation, by incarnation and stream: one that is opened again goes on.
  std::map<std::pair<std::string, std::string>, std::uint64_t> numbers;
  std::map<std::string, Doing> doing;  // by incarnation
  group::Waiter last_waiter = 0;
  std::vector<group::Answer> untold;
  std::map<group::Waiter, Result<group::Share>> answers;  // that nobody has taken yet

  // Something was said to the group. What there is no memory to tell is told the next time.
  void tell() {
    do {
      for (; !untold.empty(); untold.pop_back())
        answers.try_emplace(untold.back().waiter, std::move(untold.back().outcome));
      untold = group->take_answers();
    } while (!untold.empty());
    changed.notify_all();
  }
};

namespace {

class InProcessCollective final : public Collective {
 public:
  InProcessCollective(std::shared_ptr<InProcessGroup::State> state, group::Seat seat, std::string stream)
      : state_(std::move(state)), seat_(std::move(seat)), stream_(std::move(stream)) {}

  ~InProcessCollective() override {
    if (!stream_.empty()) return;
    const std::lock_guard lock(state_->mutex);
    state_->group->leave(seat_, now());
    state_->tell();
  }

  Rank rank() const override { return seat_.rank; }
  Rank world_size() const override { return state_->world_size; }
  std::uint64_t generation() const override { return seat_.generation; }

  void tell_doing(std::string_view doing) override { tell(&Doing::said, doing); }
  void tell_saving(std::string_view progress) override { tell(&Doing::saving, progress); }

  Result<std::unique_ptr<Collective>> stream(const std::string& name) override {
    if (name.empty()) return failure(Errc::invalid_request, "a stream has a name");
    const std::lock_guard lock(state_->mutex);
    if (auto seated = state_->group->beat(seat_, std::nullopt, now()); !seated)
      return std::unexpected(seated.error());
    return std::make_unique<InProcessCollective>(state_, seat_, name);
  }

 protected:
  Result<std::vector<Bytes>> meet(const Operation& operation, const Contribution& mine,
                                  const Call& call) override {
    std::unique_lock lock(state_->mutex);
    std::uint64_t& next = state_->numbers[{seat_.incarnation, stream_}];
    const std::uint64_t number = next;
    group::Waiter waiter = 0;
    const auto arrive = [&](const Contribution& brought) {
      waiter = ++state_->last_waiter;
      group::Arrival arrival{stream_, number, operation, Bytes{}, call.deadline};
      if (brought)
        arrival.mine = Bytes(brought->begin(), brought->end());
      else
        arrival.mine = std::unexpected(brought.error());
      Status arrived = state_->group->arrive(seat_, std::move(arrival), waiter, now());
      state_->tell();
      return arrived;
    };
    Status arrived;
    try {
      arrived = arrive(mine);
    } catch (const std::bad_alloc&) {
      // It may have been counted or not. So it comes again, and says why it brings nothing; or it hears how
      // the operation has ended.
      state_->answers.erase(waiter);
      arrived = arrive(std::unexpected(out_of_memory("meet")));
    }
    if (!arrived) return std::unexpected(arrived.error());  // and is still there
    ++next;

    const auto answered = [&] { return state_->answers.contains(waiter); };
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(call.deadline.ms);
    while (!state_->changed.wait_until(lock, call.stop, deadline, answered)) {
      if (call.stop.stop_requested())
        state_->group->stop(seat_, stream_, number, now());
      else
        state_->group->pass(now());
      state_->tell();
    }
    const Result<group::Share> outcome = std::move(state_->answers.extract(waiter).mapped());
    if (!outcome) return std::unexpected(outcome.error());
    return std::vector<Bytes>(**outcome);
  }

 private:
  void tell(std::string Doing::* who, std::string_view what) {
    const std::lock_guard lock(state_->mutex);
    Doing& doing = state_->doing[seat_.incarnation];
    doing.*who = what;
    (void)state_->group->beat(seat_, doing.text(), now());  // of an older generation: nobody asks
  }

  const std::shared_ptr<InProcessGroup::State> state_;
  const group::Seat seat_;
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
  const group::Joining joining{.rank = rank,
                               .world_size = state_->world_size,
                               .incarnation = std::to_string(++state_->incarnations),
                               .where = {},
                               .time_to_live = kForEver};
  auto& group = state_->group;
  if (!group)
    group.emplace(joining, 1, false, now());
  else if (auto joined = group->join(joining, group->generation() + 1, now()); !joined)
    return std::unexpected(joined.error());
  state_->tell();
  return std::make_unique<InProcessCollective>(
      state_, group::Seat{rank, joining.incarnation, group->generation()}, "");
}

}  // namespace baton::checkpoint
