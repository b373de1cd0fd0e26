#include "client/exchange.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <utility>

#include "base/check.h"

namespace baton::client {
namespace {

constexpr std::int64_t kSleepMax = 60'000;
constexpr Duration kWithdrawingMax =
    seconds(3);  // for what was granted already, or the word that nothing was

Error no_line_in_time() {
  return {Errc::deadline_exceeded,
          "it could not be sent before its deadline: too many calls wait on purpose"};
}

}  // namespace

Exchange::Exchange(ExchangeOptions options, std::function<void(const wire::RespValue&)> pushed)
    : options_(std::move(options)),
      tells_{.settle = [this](Call& call, Result<wire::RespValue> reply) { settle(call, std::move(reply)); },
             .pushed = std::move(pushed)},
      wakes_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      shared_(options_.line, tells_) {
  BATON_CHECK(wakes_ >= 0);
  thread_ = std::thread([this] { run(); });
}

Exchange::~Exchange() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    wake();
  }
  room_.notify_all();
  thread_.join();
  ::close(wakes_);
}

void Exchange::wake() {
  if (std::exchange(awake_, true)) return;
  const std::uint64_t one = 1;
  BATON_CHECK(::write(wakes_, &one, sizeof one) == sizeof one);
}

void Exchange::start(CallPtr call) {
  std::unique_lock lock(mutex_);
  if (is_full() && !is_own_thread()) {
    const auto until = std::chrono::milliseconds(std::max<std::int64_t>(call->deadline - now_ms(), 0));
    room_.wait_for(lock, until, [&] { return stops_ || !is_full(); });
  }
  ++calls_;
  bytes_ += call->words.size();
  inbox_.push_back(std::move(call));
  wake();
}

void Exchange::look_at_stops() {
  const std::lock_guard lock(mutex_);
  someone_stopped_ = true;
  wake();
}

void Exchange::run() {
  while (take_in()) {
    const std::int64_t now = now_ms();
    expire(now);
    advance(now);
    await();
  }
}

bool Exchange::take_in() {
  std::vector<CallPtr> taken;
  bool stops = false;
  {
    const std::lock_guard lock(mutex_);
    awake_ = true;
    someone_stopped_ = false;
    taken.swap(inbox_);
    stops = stops_;
    calls_ -= std::exchange(settled_, 0);
    bytes_ -= std::exchange(settled_bytes_, 0);
    if (!is_full()) room_.notify_all();
  }
  for (CallPtr& call : taken) {
    call->in_deadlines = deadlines_.emplace(call->deadline, call.get());
    place(std::move(call));
  }
  if (!stops) return true;
  const Error closed{Errc::closed, "the client was closed"};
  shared_.give_up(closed);
  for (Waiting& one : waiting_) one.line->give_up(closed);
  for (const CallPtr& call : std::exchange(unplaced_, {})) settle(*call, std::unexpected(closed));
  // Whoever heard of it may have started another call.
  const std::lock_guard lock(mutex_);
  return !inbox_.empty();
}

void Exchange::place(CallPtr call) {
  if (call->wait <= Duration{}) return shared_.add(std::move(call));
  unplaced_.push_back(std::move(call));
}

void Exchange::place_waiting() {
  while (!unplaced_.empty()) {
    auto free = std::ranges::find(waiting_, nullptr, &Waiting::call);
    if (free == waiting_.end()) {
      if (waiting_.size() >= options_.waiting_lines_max) return;
      waiting_.push_back({.line = std::make_unique<Line>(options_.line, tells_)});
      free = waiting_.end() - 1;
    }
    free->call = unplaced_.front().get();
    free->line->add(std::move(unplaced_.front()));
    unplaced_.pop_front();
  }
}

void Exchange::settle(Call& call, Result<wire::RespValue> reply) {
  deadlines_.erase(call.in_deadlines);
  ++settled_;
  settled_bytes_ += call.words.size();
  const auto mine = std::ranges::find(waiting_, &call, &Waiting::call);
  if (mine != waiting_.end()) mine->call = nullptr;
  std::exchange(call.done, nullptr)(std::move(reply), call.sent_at);
}

// For a call that was stopped, time is up; but what it may have been granted is waited for.
void Exchange::hurry(Call& call, Line* line, std::int64_t now) {
  if (!call.stop.stop_requested() || call.is_settled()) return;
  const bool may_bring_something = line != nullptr && call.orphan && call.was_sent;
  if (may_bring_something && std::exchange(call.is_withdrawn, true)) return;
  if (may_bring_something) line->withdraw();
  const std::int64_t until = may_bring_something ? now + kWithdrawingMax.ms : now;
  deadlines_.erase(call.in_deadlines);
  call.in_deadlines = deadlines_.emplace(std::min(until, call.deadline), &call);
}

void Exchange::expire(std::int64_t now) {
  for (const Waiting& one : waiting_) {
    if (one.call != nullptr) hurry(*one.call, one.line.get(), now);
  }
  for (const CallPtr& call : unplaced_) hurry(*call, nullptr, now);
  if (deadlines_.empty() || deadlines_.begin()->first > now) return;
  // We may have stood still, and the answer came in time.
  shared_.hear(now);
  for (const Waiting& one : waiting_) one.line->hear(now);
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Call& call = *deadlines_.begin()->second;
    const auto waiting = std::ranges::find(waiting_, &call, &Waiting::call);
    Line* line = waiting != waiting_.end() ? waiting->line.get()
                 : call.wait > Duration{}  ? nullptr
                                           : &shared_;
    settle(call, std::unexpected(line != nullptr ? out_of_time(call, line->trouble()) : no_line_in_time()));
    // Its reply must not come to the line's next call.
    if (waiting != waiting_.end()) line->forget_settled(), line->hang_up();
  }
  shared_.forget_settled();
  std::erase_if(unplaced_, [](const CallPtr& call) { return call->is_settled(); });
}

void Exchange::advance(std::int64_t now) {
  place_waiting();
  happened_.resize(1 + waiting_.size());
  const auto advance = [&](Line& line, Happened& happened) {
    const auto [readable, writable] = std::exchange(happened, {});
    line.advance(readable, writable, now);
  };
  advance(shared_, happened_[0]);
  for (std::size_t at = 0; at < waiting_.size(); ++at) advance(*waiting_[at].line, happened_[at + 1]);
}

void Exchange::await() {
  std::int64_t until = deadlines_.empty() ? LLONG_MAX : deadlines_.begin()->first;
  std::vector<pollfd> watched;
  watched.push_back({wakes_, POLLIN, 0});
  const auto watch = [&](const Line& line) {
    until = std::min(until, line.wakes_at());
    watched.push_back({line.socket(), static_cast<short>(POLLIN | (line.wants_to_write() ? POLLOUT : 0)), 0});
  };
  watch(shared_);
  for (const Waiting& one : waiting_) watch(*one.line);
  {
    const std::lock_guard lock(mutex_);
    if (!inbox_.empty() || stops_ || someone_stopped_ || (settled_ > 0 && is_full())) return;
    if (!unplaced_.empty() && std::ranges::find(waiting_, nullptr, &Waiting::call) != waiting_.end()) return;
    awake_ = false;
  }
  const std::int64_t sleep = std::clamp<std::int64_t>(until - now_ms(), 0, kSleepMax);
  ::poll(watched.data(), watched.size(), static_cast<int>(sleep));
  if (watched[0].revents != 0) {
    std::uint64_t count = 0;
    (void)!::read(wakes_, &count, sizeof count);
  }
  happened_.resize(watched.size() - 1);
  for (std::size_t at = 0; at < happened_.size(); ++at) {
    const short seen = watched[at + 1].revents;
    happened_[at] = {.readable = (seen & (POLLIN | POLLHUP | POLLERR)) != 0,
                     .writable = (seen & (POLLOUT | POLLHUP | POLLERR)) != 0};
  }
}

}  // namespace baton::client
