// Calls by chance that say everything a call can say, mostly of what the caller really holds, so that most of
// it has an effect.
//
// Times are chosen so that it does not matter that two implementations are asked one after the other, and
// that asking takes time: each that means something lies well between two multiples of the pause that is
// made now and then.
#pragma once

#include <map>
#include <random>
#include <set>

#include "tests/stream/people.h"

namespace baton::stream {

inline constexpr Duration kPause = seconds(45);
inline constexpr Duration kShortLease = seconds(2);  // time has to pass after a call with it

// Stands for the epoch under which a message was handed out so many times before its last one: each
// implementation counts them in its own way.
inline Epoch handed_out_before(int times) { return {-1 - times}; }

class RandomCalls {
 public:
  // Which streams come first of those that have waited for equally long, and which messages without a stream,
  // nobody promises. So every other conversation has limits that make a claim choose, and the others have
  // messages without a stream, instances that are evicted, dead letters that come back, and short leases: a
  // message that was lost too often is buried when its stream is picked, or not before it would be handed
  // out.
  explicit RandomCalls(unsigned seed) : dice_(seed), is_choosy_(seed % 2 == 1) {}

  unsigned below(unsigned limit) { return static_cast<unsigned>(dice_()) % limit; }
  bool one_in(unsigned many) { return below(many) == 0; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[below(static_cast<unsigned>(all.size()))];
  }

  bool is_choosy() const { return is_choosy_; }

  using Hands = std::map<Lane, std::set<MessageId>>;

  WorkBatchRequest next(const Instance& who, const Hands& hands) {
    WorkBatchRequest request{.instance = who};
    request.instance.host = one_of({"here", "there"});
    if (one_in(4)) request.instance.metadata = one_of({R"({"v": 1})", R"({"v": 2})"});
    reports(request, hands);
    results(request);
    for (auto [lane, list] : {std::pair(Lane::outbox, &request.new_outbox_messages),
                              std::pair(Lane::inbox, &request.new_inbox_messages)})
      for (unsigned left = below(4); left > 0; --left) list->push_back(new_message(lane));
    conditions(request);
    return request;
  }

 private:
  Held held(Lane lane, const Hands& hands) {
    Held item{message(1 + below(kMessages)), {}};
    if (const auto mine = hands.find(lane); mine != hands.end() && !mine->second.empty() && !one_in(4))
      item.message = *std::next(mine->second.begin(), below(static_cast<unsigned>(mine->second.size())));
    if (!one_in(4)) item.epoch = handed_out_before(one_in(6) ? 1 : 0);
    return item;
  }

  void reports(WorkBatchRequest& request, const Hands& hands) {
    for (auto [lane, list] : {std::pair(Lane::outbox, &request.outbox_completions),
                              std::pair(Lane::inbox, &request.inbox_completions)}) {
      const MessageStatus done =
          lane == Lane::outbox ? MessageStatus::published : MessageStatus::event_stored;
      for (unsigned left = below(4); left > 0; --left)
        list->push_back({held(lane, hands), one_in(2) ? done : static_cast<MessageStatus>(below(8))});
      if (!list->empty() && one_in(8)) list->push_back(list->front());
    }
    for (auto [lane, list] : {std::pair(Lane::outbox, &request.outbox_failures),
                              std::pair(Lane::inbox, &request.inbox_failures)}) {
      for (unsigned left = below(3); left > 0; --left) {
        list->push_back(
            {.held = held(lane, hands),
             .completed = static_cast<MessageStatus>(below(4)),
             .error = one_of({"it broke", "\"no\"\n\\", ""}),
             .reason = one_of({FailureReason::none, FailureReason::transport_not_ready,
                               FailureReason::transport_exception, FailureReason::serialization_error,
                               FailureReason::validation_error, FailureReason::max_attempts_exceeded,
                               FailureReason::lease_expired, FailureReason::event_storage_failure,
                               FailureReason::unknown})});
        if (one_in(4)) list->back().policy = static_cast<FailurePolicy>(below(3));
      }
      // Two messages that fail at once are due at once, and of their streams either may come first.
      if (is_choosy_ && !list->empty())
        std::erase_if(*list, [first = list->front().held.message](const Failure& item) {
          return item.held.message != first;
        });
      if (!list->empty() && one_in(8)) list->push_back(list->front());
    }
    for (auto [lane, list] :
         {std::pair(Lane::outbox, &request.outbox_renewals), std::pair(Lane::inbox, &request.inbox_renewals)})
      for (unsigned left = below(3); left > 0; --left) list->push_back(held(lane, hands));
  }

  // Of receptors and perspectives.
  void results(WorkBatchRequest& request) {
    for (auto* list : {&request.receptor_completions, &request.receptor_failures}) {
      for (unsigned left = below(2); left > 0; --left)
        list->push_back({.event = message(1 + below(9)),
                         .receptor = one_of({"mail", "bill"}),
                         .status = one_of({ReceptorStatus::none, ReceptorStatus::processing,
                                           ReceptorStatus::completed, ReceptorStatus::failed}),
                         .error = one_of({"", "no"}),
                         .attempt = static_cast<std::int32_t>(1 + below(3))});
    }
    for (auto* list : {&request.perspective_completions, &request.perspective_failures}) {
      for (unsigned left = below(2); left > 0; --left) {
        list->push_back({.stream = stream(1 + below(kStreams)),
                         .perspective = one_of({"totals", "places"}),
                         .last_event = message(1 + below(kMessages)),
                         .status = one_of({PerspectiveStatus::none, PerspectiveStatus::processing,
                                           PerspectiveStatus::completed, PerspectiveStatus::failed,
                                           PerspectiveStatus::catching_up}),
                         .error = one_of({"", "it broke"})});
        for (unsigned named = below(4); named > 0; --named)
          list->back().processed.push_back(message(1 + below(kMessages)));
      }
    }
  }

  // A message has its stream by its number. Data differs in length, for the sake of limits.
  NewMessage new_message(Lane lane) {
    const unsigned number = 1 + below(kMessages);
    NewMessage made =
        !is_choosy_ && number % 5 == 0 ? loose(number) : in_stream(number, 1 + number % kStreams);
    made.type = one_of({"Thing", "Event"});
    made.envelope_type = one_of({"", "Envelope"});
    made.data = "\"" + std::string(below(60), 'd') + "\"";
    made.metadata = one_of({"", R"({"hop": 1})"});
    made.scope = one_of({"", R"({"tenant": "x"})"});
    made.is_event = one_in(2);
    if (made.is_event && made.stream && lane == Lane::outbox && one_in(4)) made.target.clear();
    if (one_in(6)) made.policy = static_cast<FailurePolicy>(below(3));
    return made;
  }

  void conditions(WorkBatchRequest& request) {
    if (one_in(8)) request.flags = request.flags | WorkFlags::skip_inbox_claiming;
    if (one_in(8)) request.flags = request.flags | WorkFlags::skip_outbox_claiming;
    if (one_in(6)) request.flags = request.flags | WorkFlags::debug_mode;
    if (one_in(4)) request.partitions = one_of({1, 7});
    request.lease = is_choosy_ ? kLease : one_of({seconds(25), seconds(70), kLease, kShortLease});
    if (one_in(4)) request.limits.messages_per_stream = static_cast<std::int32_t>(1 + below(2));
    request.stale = is_choosy_ ? days(7) : one_of({kStale, kStale, seconds(160), seconds(70)});
    if (!is_choosy_) return;
    if (one_in(4)) request.partitions_max = static_cast<std::int32_t>(1 + below(3));
    if (one_in(4)) request.limits.streams = static_cast<std::int32_t>(1 + below(2));
    if (one_in(4)) request.limits.messages = static_cast<std::int32_t>(1 + below(3));
    if (one_in(4)) request.limits.bytes = 1 + below(150);
  }

  static constexpr unsigned kMessages = 60;
  static constexpr unsigned kStreams = 6;
  std::minstd_rand dice_;
  const bool is_choosy_;
};

}  // namespace baton::stream
