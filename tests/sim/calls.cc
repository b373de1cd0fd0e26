#include "tests/sim/calls.h"

#include <algorithm>

#include "tests/sim/trace.h"

namespace baton::sim {
namespace {

constexpr std::int64_t kPatienceMs = 150;  // before the second try; doubles with each

}  // namespace

// The dice of a message depend on nothing but the message, so that taking an item out of a scenario leaves
// the others' fate alone.
std::uint64_t Calls::roll(std::uint64_t call, std::uint64_t tried, std::uint64_t purpose) const {
  return mix(mix(scenario_.seed, call), mix(tried, purpose));
}

std::int64_t Calls::delay(std::uint64_t rolled) const {
  const std::uint64_t most = healed_ ? 2 : scenario_[Knob::net_delay_ms] + 1;
  return static_cast<std::int64_t>(rolled % most);
}

std::uint64_t Calls::ask(Party party, core::Request request, std::uint32_t tries_max, bool loses_first) {
  calls_.push_back(
      {.party = party, .request = std::move(request), .tries_max = tries_max, .loses_first = loses_first});
  ++open_;
  send(calls_.size() - 1);
  return calls_.size() - 1;
}

void Calls::send(std::uint64_t number) {
  Call& call = calls_[number];
  const std::uint64_t tried = ++call.tries;
  call.asked = clock_.now;
  const std::int64_t patience = kPatienceMs << std::min<std::uint64_t>(tried - 1, 4);
  agenda_.plan(clock_.now + patience, Due::timeout, number, tried);
  const bool lost = !healed_ && (cut_[call.party] == 1 || (call.loses_first && tried == 1) ||
                                 roll(number, tried, 1) % 1000 < scenario_[Knob::lost_permille]);
  if (lost) {
    faults_.struck(cut_[call.party] == 1 ? Fault::party_cut_off : Fault::request_lost);
    return;
  }
  agenda_.plan(clock_.now + delay(roll(number, tried, 2)), Due::arrival, number, tried);
  if (!healed_ && roll(number, tried, 3) % 1000 < scenario_[Knob::doubled_permille]) {
    faults_.struck(Fault::request_doubled);
    agenda_.plan(clock_.now + delay(roll(number, tried, 4)) * 3, Due::arrival, number, tried);
  }
}

bool Calls::timed_out(std::uint64_t number, std::uint64_t tried) {
  Call& call = calls_[number];
  if (call.done || call.tries != tried) return false;
  if (call.tries < call.tries_max || (healed_ && call.tries_max > 1)) {
    faults_.struck(Fault::retried);
    send(number);
    return false;
  }
  faults_.struck(Fault::gave_up);
  call.done = true;
  --open_;
  return true;
}

void Calls::answer(std::uint64_t number, std::uint64_t tried, engine::Answer answer) {
  const Party party = calls_[number].party;
  const bool lost =
      !healed_ && (cut_[party] != 0 || roll(number, tried, 5) % 1000 < scenario_[Knob::lost_answer_permille]);
  if (lost) {
    faults_.struck(cut_[party] != 0 ? Fault::party_cut_off : Fault::answer_lost);
    return;
  }
  underway_.emplace(++answers_, Underway{number, std::move(answer)});
  agenda_.plan(clock_.now + delay(roll(number, tried, 6)), Due::answer, answers_);
}

std::optional<engine::Answer> Calls::arrived(std::uint64_t number, std::uint64_t& call) {
  const auto found = underway_.find(number);
  Underway underway = std::move(found->second);
  underway_.erase(found);
  call = underway.call;
  if (calls_[call].done) return {};
  calls_[call].done = true;
  --open_;
  return std::move(underway.answer);
}

void Calls::heal() {
  healed_ = true;
  cut_.clear();
}

}  // namespace baton::sim
