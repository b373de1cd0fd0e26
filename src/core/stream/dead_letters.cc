#include "core/stream/dead_letters.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "core/stream/streams.h"

namespace baton::core {

using namespace streams;

namespace {

// Dead letters of a namespace, up to number `last`, that died by `until`: those named, or all, the oldest
// first; as many as one entry takes.
template <class May>
std::vector<Number> choose_letters(const Streams& all, const auto& request, Instant until, May may) {
  const std::vector<Number>& named = request.letters;
  std::vector<Number> chosen;
  const auto consider = [&](Slot slot) {
    const Letter& letter = all.dead.all[slot];
    if (letter.number <= request.last && letter.since <= until &&
        all.services[letter.service].ns == request.ns && may(letter))
      chosen.push_back(letter.number);
  };
  for (const Number number : named) {
    if (chosen.size() == kLettersPerEntryMax) return chosen;
    const auto found = all.dead_numbers.find(number);
    if (found != all.dead_numbers.end() && std::ranges::find(chosen, number) == chosen.end())
      consider(found->second);
  }
  if (!named.empty()) return chosen;
  for (Slot slot = all.dead.by_age.head; slot != 0; slot = all.dead.all[slot].next) {
    const Letter& letter = all.dead.all[slot];
    if (chosen.size() == kLettersPerEntryMax || letter.since > until || letter.number > request.last) break;
    consider(slot);
  }
  return chosen;
}

// Each in order, so that a message finds its place beside the one before (Keeper::add). Those without a
// stream come first, as they are.
void go_stream_by_stream(const Streams& all, std::vector<Number>& letters) {
  std::vector<std::tuple<Number, std::uint64_t, Number>> order;  // stream, place in it, letter
  for (const Number letter : letters) {
    const Message& message = all.dead.all[all.dead_numbers.at(letter)].message;
    if (message.stream == 0)
      order.emplace_back(0, order.size(), letter);
    else
      order.emplace_back(all.streams[message.stream].number, message.seq, letter);
  }
  std::ranges::sort(order);
  std::ranges::transform(order, letters.begin(), [](const auto& one) { return std::get<2>(one); });
}

// Who repeats the call until nothing is left names the last letter of the first reply, or would never come to
// an end while messages die again.
Purged purged_of(const Streams& all, std::size_t count) {
  return {.count = static_cast<std::uint32_t>(count), .last_letter = all.next_letter - 1};
}

}  // namespace

Decision decide(const State& state, const ReplayLetters& request, const Moment&) {
  const Streams& all = state.streams;
  // The same message may have been stored once more, in an outbox; then the letter stays where it is.
  std::set<std::pair<std::uint32_t, stream::MessageId>> back;
  bool is_there = false;
  LettersReplayed replayed{choose_letters(all, request, kNever, [&](const Letter& letter) {
    const bool fits = find_message(all, letter.service, letter.lane, letter.message.id) == 0 &&
                      back.emplace(scope_of(letter.service, letter.lane), letter.message.id).second;
    is_there |= !fits;
    return fits;
  })};
  replayed.remembers = true;
  if (is_there && !request.letters.empty())
    return Reject{Errc::conflict, "the message of a dead letter waits already, for it was stored once more"};
  go_stream_by_stream(all, replayed.letters);
  const Purged reply = purged_of(all, replayed.letters.size());
  if (reply.count == 0) return Reply{reply};
  return Append{std::move(replayed), reply};
}

Decision decide(const State& state, const PurgeLetters& request, const Moment& at) {
  LettersPurged purged{choose_letters(state.streams, request, at.now - request.older_than,
                                      [](const Letter&) { return true; })};
  const Purged reply = purged_of(state.streams, purged.letters.size());
  if (reply.count == 0) return Reply{reply};
  return Append{std::move(purged), reply};
}

// One that parks its stream stays: without it the stream would go on, and only people may say so.
std::optional<LettersPurged> surplus_letters(const State& state, const Moment& at) {
  const Streams& all = state.streams;
  const std::uint64_t count = all.dead.all.used(), count_max = at.rules.streams.letters_max;
  if (count <= count_max || all.dead_in_no_way.empty()) return {};
  const auto surplus = std::min<std::uint64_t>(count - count_max, kLettersPerEntryMax);
  LettersPurged purged;
  for (const Number number : all.dead_in_no_way) {
    if (purged.letters.size() == surplus) break;
    purged.letters.push_back(number);
  }
  return purged;
}

}  // namespace baton::core
