#include "core/stream/dead_letters.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/stream/streams.h"

namespace baton::core {

using namespace streams;

namespace {

// Dead letters of a namespace: those named, or all, the oldest first; as many as one entry takes.
template <class May>
std::vector<Number> choose_letters(const Streams& all, std::string_view ns, const std::vector<Number>& named,
                                   May may) {
  std::vector<Number> chosen;
  const auto consider = [&](Slot slot) {
    const Letter& letter = all.dead.all[slot];
    if (all.services[letter.service].ns == ns && may(letter)) chosen.push_back(letter.number);
  };
  for (const Number number : named) {
    if (chosen.size() == kLettersPerEntryMax) return chosen;
    const auto found = all.dead_numbers.find(number);
    if (found != all.dead_numbers.end() && std::ranges::find(chosen, number) == chosen.end())
      consider(found->second);
  }
  if (!named.empty()) return chosen;
  for (Slot slot = all.dead.by_age.head; slot != 0; slot = all.dead.all[slot].next) {
    if (chosen.size() == kLettersPerEntryMax) break;
    consider(slot);
  }
  return chosen;
}

}  // namespace

Decision decide(const State& state, const ReplayLetters& request, const Moment&) {
  const Streams& all = state.streams;
  // The same message may have been stored once more, in an outbox; then the letter stays where it is.
  std::set<std::pair<std::uint32_t, stream::MessageId>> back;
  bool is_there = false;
  LettersReplayed replayed{choose_letters(all, request.ns, request.letters, [&](const Letter& letter) {
    const bool fits = find_message(all, letter.service, letter.lane, letter.message.id) == 0 &&
                      back.emplace(scope_of(letter.service, letter.lane), letter.message.id).second;
    is_there |= !fits;
    return fits;
  })};
  if (is_there && !request.letters.empty())
    return Reject{Errc::conflict, "the message of a dead letter waits already, for it was stored once more"};
  const auto count = static_cast<std::uint32_t>(replayed.letters.size());
  if (count == 0) return Reply{Purged{}};
  return Append{std::move(replayed), Purged{count}};
}

Decision decide(const State& state, const PurgeLetters& request, const Moment& at) {
  const Instant before = at.now - request.older_than;
  LettersPurged purged{choose_letters(state.streams, request.ns, request.letters,
                                      [&](const Letter& letter) { return letter.since <= before; })};
  const auto count = static_cast<std::uint32_t>(purged.letters.size());
  if (count == 0) return Reply{Purged{}};
  return Append{std::move(purged), Purged{count}};
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
