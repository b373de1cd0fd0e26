#include "stream/in_hand.h"

#include <algorithm>

#include "base/check.h"
#include "stream/json_text.h"

namespace baton::stream {
namespace {

std::size_t index_of(Lane lane) { return lane == Lane::outbox ? 0 : 1; }

MessageStatus done_in(Lane lane) {
  return lane == Lane::outbox ? MessageStatus::published : MessageStatus::event_stored;
}

constexpr std::size_t kResultBytes = 64;  // without its error
constexpr const char* kRefused = "it failed, and what it said of that was refused by the coordinator";

}  // namespace

std::size_t InHand::Result::bytes() const { return kResultBytes + outcome.error.size(); }

InHand::Key InHand::key_of(const Work& work) {
  return {work.lane, !work.stream, work.stream ? work.stream->value : work.message.value};
}

void InHand::take(std::vector<Work> work, Instant asked) {
  messages_ += work.size();
  for (Work& one : work) {
    newest_ = std::max(newest_, one.epoch);
    const Key key = key_of(one);
    Stream& stream = streams_[key];
    stream.held_from = asked;
    if (stream.claim != one.epoch) {
      // Ours before, and claimed again after the lease was lost or ended unnoticed. Somebody may still be at
      // it.
      if (!stream.waiting.empty()) std::erase(ready_, key);
      let_go(stream);
      stream.claim = one.epoch;
      stream.lost = {};
    }
    if (stream.waiting.empty() && !stream.handling) ready_.push_back(key);
    stream.waiting.push_back(std::move(one));
  }
}

void InHand::take_unknown(std::vector<Work> held, Instant asked) {
  std::erase_if(held, [&](const Work& work) { return work.epoch <= newest_; });
  take(std::move(held), asked);
}

std::optional<InHand::Begun> InHand::next(Instant now) {
  while (!ready_.empty() && has_ended(streams_.at(ready_.front()), now)) {
    const auto found = streams_.find(ready_.front());
    let_go(found->second);
    forget_if_empty(found);
  }
  if (ready_.empty()) return std::nullopt;
  Stream& stream = streams_.at(ready_.front());
  ready_.pop_front();
  Begun begun{.work = std::move(stream.waiting.front()), .lost = stream.lost.get_token()};
  stream.waiting.pop_front();
  stream.handling = begun.work.held();
  ++handling_;
  return begun;
}

void InHand::finish(const Work& work, const Outcome& outcome) {
  const auto found = streams_.find(key_of(work));
  BATON_CHECK(found != streams_.end() && found->second.handling);
  Stream& stream = found->second;
  stream.handling.reset();
  --handling_;
  --messages_;
  const bool goes_on = outcome.kind == Outcome::Kind::done || outcome.kind == Outcome::Kind::reported;
  ++(goes_on ? counts_.handled : outcome.kind == Outcome::Kind::failed ? counts_.failed : counts_.given_back);
  // Also if the lease was lost: the coordinator knows best.
  if (outcome.kind != Outcome::Kind::reported) {
    results_.push_back({.lane = work.lane, .held = work.held(), .outcome = outcome});
    // Handlers say what others have told them, and that may be anything.
    results_.back().outcome.error = as_utf8(outcome.error, kToldErrorBytesMax);
  }
  // What is behind it may not come first; but what was claimed after this one was lost is another matter.
  const bool is_current = !stream.waiting.empty() && stream.waiting.front().epoch == work.epoch;
  if (!goes_on && is_current) give_back(work.lane, stream);
  if (stream.waiting.empty())
    streams_.erase(found);
  else
    ready_.push_back(found->first);
}

void InHand::give_back(Lane lane, Stream& stream) {
  messages_ -= stream.waiting.size();
  counts_.given_back += stream.waiting.size();
  for (const Work& work : stream.waiting)
    results_.push_back({.lane = lane, .held = work.held(), .outcome = given_back()});
  stream.waiting.clear();
}

void InHand::speak(WorkBatchRequest& request, Instant now) {
  said_ = {.at = now};
  std::size_t bytes = 0;
  for (const Result& result : results_) {
    bytes += result.bytes();
    if (said_.results == results_max_ || bytes > kToldBytesMax) break;
    ++said_.results;
    const bool outbox = result.lane == Lane::outbox;
    if (result.outcome.kind == Outcome::Kind::failed) {
      (outbox ? request.outbox_failures : request.inbox_failures)
          .push_back({.held = result.held,
                      .error = result.outcome.error,
                      .reason = result.outcome.reason,
                      .policy = result.outcome.policy});
    } else {
      (outbox ? request.outbox_completions : request.inbox_completions)
          .push_back({.held = result.held,
                      .status = result.outcome.kind == Outcome::Kind::done ? done_in(result.lane)
                                                                           : MessageStatus::none});
    }
  }
  for (const auto& [key, stream] : streams_) {
    if (stream.lost.stop_requested() || now < stream.held_from + Duration{lease_.ms / 3}) continue;
    const Held named = holds(stream);
    (key.lane == Lane::outbox ? request.outbox_renewals : request.inbox_renewals).push_back(named);
    said_.renewals[index_of(key.lane)].push_back({key, named});
  }
}

void InHand::hear(const WorkBatch& answer) {
  for (const auto* verdicts : {&answer.outbox_completions, &answer.inbox_completions, &answer.outbox_failures,
                               &answer.inbox_failures})
    counts_.lost += static_cast<std::uint64_t>(std::ranges::count(*verdicts, Verdict::lost_lease));
  results_.erase(results_.begin(), results_.begin() + static_cast<std::ptrdiff_t>(said_.results));
  results_max_ = std::min(results_max_ * 2, kItemsMax);
  for (const auto* verdicts : {&answer.outbox_renewals, &answer.inbox_renewals}) {
    const std::vector<Renewal>& renewals = said_.renewals[verdicts == &answer.outbox_renewals ? 0 : 1];
    for (std::size_t i = 0; i < verdicts->size(); ++i) {
      const auto found = streams_.find(renewals[i].key);
      if (found == streams_.end()) continue;  // finished meanwhile
      if ((*verdicts)[i] == Verdict::ok) {
        found->second.held_from = said_.at;
      } else if ((*verdicts)[i] == Verdict::lost_lease || renewals[i].named == holds(found->second)) {
        // Somebody else has the stream, or is done with the message; or its handler has reported it and not
        // returned yet. No lease is left in any case.
        let_go(found->second);
        forget_if_empty(found);
      }
      // Otherwise the message was begun, and perhaps done, while the call was on its way: that says nothing
      // of those behind it. The lease is still due, and the next turn asks for it by one of them.
    }
  }
  said_ = {};
}

bool InHand::rephrase() {
  const std::size_t said = std::exchange(said_.results, 0);
  if (said == 0) return false;
  if (said > 1) {
    results_max_ = said / 2;
    return true;
  }
  Result& refused = results_.front();
  if (refused.is_plain || refused.outcome.kind != Outcome::Kind::failed) {
    results_.pop_front();
    ++counts_.lost;
    return false;
  }
  refused.outcome = failed(kRefused);
  refused.is_plain = true;
  return true;
}

void InHand::let_go(Stream& stream) {
  stream.lost.request_stop();
  counts_.lost += stream.waiting.size();
  messages_ -= stream.waiting.size();
  stream.waiting.clear();
}

// Of a stream whose waiting messages have just gone.
void InHand::forget_if_empty(std::map<Key, Stream>::iterator found) {
  if (found->second.handling || !found->second.waiting.empty()) return;
  std::erase(ready_, found->first);
  streams_.erase(found);
}

void InHand::let_go_expired(Instant now) {
  for (auto at = streams_.begin(); at != streams_.end();) {
    const auto stream = at++;
    if (!has_ended(stream->second, now) || stream->second.lost.stop_requested()) continue;
    let_go(stream->second);
    forget_if_empty(stream);
  }
}

void InHand::let_go_all() {
  for (auto at = streams_.begin(); at != streams_.end();) {
    const auto stream = at++;
    let_go(stream->second);
    forget_if_empty(stream);
  }
  counts_.lost += results_.size();
  results_.clear();
  said_ = {};
}

void InHand::give_back_waiting() {
  for (auto at = streams_.begin(); at != streams_.end();) {
    const auto stream = at++;
    give_back(stream->first.lane, stream->second);
    forget_if_empty(stream);
  }
}

void InHand::stop_handling() {
  for (auto& [key, stream] : streams_) stream.lost.request_stop();
}

std::optional<Instant> InHand::first_end(Duration after) const {
  std::optional<Instant> first;
  for (const auto& [key, stream] : streams_) {
    if (!stream.lost.stop_requested() && (!first || stream.held_from < *first)) first = stream.held_from;
  }
  return first ? std::optional(*first + after) : std::nullopt;
}

}  // namespace baton::stream
