#include "core/stream/why.h"

#include <algorithm>

#include "core/stream/span.h"
#include "core/stream/work_request.h"

namespace baton::core {

using namespace streams;

namespace {

std::string count(std::uint64_t number) { return std::to_string(number); }
std::string at_most(Duration time) { return span((time.ms + 999) / 1000); }
std::string ago(Duration time) { return span(std::max<std::int64_t>(time.ms, 0) / 1000) + " ago"; }
std::string text(const stream::Uuid& id) { return stream::to_text(id); }

// There may be a million letters, and whoever asks does not keep everybody else waiting.
template <class Letters, class Visit>
void look_through_newest(const Letters& letters, const Visit& visit) {
  Slot slot = letters.by_age.tail;
  for (std::size_t examined = 0; slot != 0 && examined < kStreamsExaminedMax; ++examined) {
    visit(letters.all[slot]);
    slot = letters.all[slot].prev;
  }
}

// Everything that is asked about one message that waits.
class Inquiry {
 public:
  Inquiry(const State& state, const Presence& presence, const StreamLook& look, const Rules& rules)
      : state_(state), all_(state.streams), presence_(presence), look_(look), rules_(rules) {}

  void ask_about(const Message& message) {
    const Stream& of = all_.streams[message.stream];
    say("where is it?", where(message, of));
    say("is anybody at work?", anybody(all_.services[of.service]));
    if (!of.is_loose()) say("whose is it?", whose(of));
    in_the_way(message, of);
    say("does somebody hold it?", holder(message, of));
    may_be_tried(message);
  }

  void tell_of(const Letter& letter) {
    const std::string lane = letter.lane == stream::Lane::outbox ? "outbox" : "inbox";
    const std::string& service = all_.services[letter.service].name;
    if (!letter.is_dead)
      return say("where is it?", "the " + lane + " of " + service + " is done with it since " +
                                     ago(look_.now - letter.since) +
                                     ", and it is kept for people to look at");
    answers_.push_back({"where is it?",
                        "it became dead letter " + count(letter.number) + " of " + service + " " +
                            ago(look_.now - letter.since) + ". Failures: " + count(letter.message.failures) +
                            ", deliveries: " + count(letter.message.deliveries) + ". The last said: ",
                        letter.message.error, ". Replay it, or purge it."});
  }

  void tell_of(const Seen& seen) {
    say("where is it?", "the inbox of " + all_.services[seen.service].name + " has seen it " +
                            ago(look_.now - seen.since) + ", and it is done");
  }

  void say(std::string_view question, std::string answer) {
    answers_.push_back({question, std::move(answer)});
  }
  std::vector<WhyAnswer> take() { return std::move(answers_); }
  bool is_empty() const { return answers_.empty(); }

 private:
  std::string where(const Message& message, const Stream& of) const {
    const std::string place =
        "it waits in the " + std::string(of.lane == stream::Lane::outbox ? "outbox" : "inbox") + " of " +
        all_.services[of.service].name + ", stored " + ago(look_.now - message.stored_at);
    return of.is_loose() ? place
                         : place + ", number " + count(message.seq) + " of stream " + text(of.id.value);
  }

  std::string anybody(const Service& service) const {
    const Instant since = look_.now - look_.stale;
    std::uint64_t active = 0, asking = 0;
    Instant last;
    for (const auto& [id, slot] : service.instances) {
      const Instant heard = presence_.last_heard(all_.instances[slot]);
      active += heard >= since;
      asking += presence_.has_rank(all_.instances[slot], since);
      last = std::max(last, heard);
    }
    if (asking > 0)
      return "yes: " + count(asking) + " active, the last one heard of " + ago(look_.now - last);
    if (active > 0) return "no: " + count(active) + " active, but none has asked for work. Let one claim.";
    return "no: " +
           (service.instances.empty() ? "no instance of this service is known"
                                      : "the last one was heard of " + ago(look_.now - last)) +
           ". Start one, and let it call at least every " + at_most(look_.stale) + ".";
  }

  std::string whose(const Stream& of) const {
    const auto owner = owner_of(state_, presence_, look_, of.service, of.partition);
    const std::string partition = "partition " + std::to_string(of.partition);
    if (!owner) return partition + " is nobody's, since nobody is at work";
    return partition + " is offered to " + text(owner->value) + " first, and after " +
           at_most(rules_.streams.offered_for) + " to everybody";
  }

  void in_the_way(const Message& message, const Stream& of) {
    constexpr std::string_view kQuestion = "is another message in its way?";
    if (of.is_loose())
      return say(
          kQuestion,
          "no: it belongs to no stream, so nothing is before it. If it should be in order, its stream id "
          "is missing.");
    if (of.parking > 0)
      return say(kQuestion, "yes: its stream is parked behind dead letter " + parking_letter(message.stream) +
                                ". Replay it, or purge it.");
    const Message& first = all_.messages[of.messages.head];
    if (&first == &message) return say(kQuestion, "no: it is the first of its stream");
    const std::string ahead = "yes: message " + text(first.id.value) + ", number " + count(first.seq) +
                              " of the stream, comes first";
    if (first.due <= look_.now) {
      // One that came back, and is handed out when this one is done.
      const bool is_late = is_out(of, message) && !is_out(of, first) && of.lease_until > look_.now;
      return say(kQuestion, is_late ? "no: it was handed out" : ahead);
    }
    answers_.push_back({kQuestion,
                        ahead + ". It failed (" + count(first.failures) +
                            " so far), is to be tried again in " + at_most(first.due - look_.now) +
                            ", and said: ",
                        first.error});
  }

  std::string parking_letter(Slot of) const {
    std::string number = "(an old one)";
    look_through_newest(all_.dead, [&](const Letter& letter) {
      if (letter.parks && letter.message.stream == of) number = count(letter.number);
    });
    return number;
  }

  // Others of its stream may have been handed out without it: it came back, or came, after they were claimed.
  std::string holder(const Message& message, const Stream& of) const {
    if (of.owner == 0) return "no: nobody holds it";
    const Instance& held = all_.instances[of.owner];
    std::string answer = is_out(of, message) ? "yes: by " : "no, but its stream is held: by ";
    answer += text(held.id.value);
    if (!held.host.empty()) answer += " (process " + std::to_string(held.process) + " on " + held.host + ")";
    answer += of.lease_until > look_.now
                  ? ", for " + at_most(of.lease_until - look_.now) + " more"
                  : ", whose lease ended " + ago(look_.now - of.lease_until) + ": whoever asks next has it";
    const Instant heard = presence_.last_heard(held);
    if (heard < look_.now - look_.stale)
      answer += ". It was last heard of " + ago(look_.now - heard) +
                ", and is evicted by the next call of another instance";
    return answer;
  }

  void may_be_tried(const Message& message) {
    constexpr std::string_view kQuestion = "may it be tried?";
    std::string rest;
    if (const std::uint32_t lost = message.deliveries - message.failures; lost > 0)
      rest = ". Of those it was handed out to, some were never heard of again: " + count(lost);
    if (message.due <= look_.now) return say(kQuestion, "yes" + rest);
    answers_.push_back({kQuestion,
                        "in " + at_most(message.due - look_.now) + ": it failed (" + count(message.failures) +
                            " so far), and said: ",
                        message.error, rest});
  }

  const State& state_;
  const Streams& all_;
  const Presence& presence_;
  const StreamLook& look_;
  const Rules& rules_;
  std::vector<WhyAnswer> answers_;
};

std::vector<const Letter*> letters_of(const Streams& all, std::string_view ns, stream::MessageId message) {
  std::vector<const Letter*> found;
  const auto consider = [&](const Letter& letter) {
    if (letter.message.id == message && all.services[letter.service].ns == ns) found.push_back(&letter);
  };
  look_through_newest(all.dead, consider);
  look_through_newest(all.kept, consider);
  return found;
}

}  // namespace

std::vector<WhyAnswer> why(const State& state, const Presence& presence, const StreamLook& look,
                           const Rules& rules, stream::MessageId message) {
  const Streams& all = state.streams;
  Inquiry inquiry(state, presence, look, rules);
  std::vector<Slot> waiting, seen;
  for (Slot slot = 1; slot < all.services.end(); ++slot) {
    if (all.services[slot].ns != look.ns) continue;
    bool waits_in_inbox = false;
    for (const stream::Lane lane : kLanes) {
      const Slot found = find_message(all, slot, lane, message);
      if (found != 0) waiting.push_back(found);
      waits_in_inbox = found != 0 && lane == stream::Lane::inbox;
    }
    const Slot known = all.seen_ids.find(slot, message.value);
    if (known != 0 && !waits_in_inbox) seen.push_back(known);
  }
  for (const Letter* letter : letters_of(all, look.ns, message)) {
    inquiry.tell_of(*letter);
    std::erase_if(seen, [&](Slot slot) {
      return letter->lane == stream::Lane::inbox && all.seen.all[slot].service == letter->service;
    });
  }
  for (const Slot slot : seen) inquiry.tell_of(all.seen.all[slot]);
  for (const Slot slot : waiting) inquiry.ask_about(all.messages[slot]);
  const bool is_gone = inquiry.is_empty();
  if (is_gone)
    inquiry.say("where is it?",
                "nowhere: it was never stored here, or it is done and forgotten. Look at the sender, at the "
                "service name and at the namespace.");
  if ((is_gone || !seen.empty()) && all.dead.all.used() > kStreamsExaminedMax)
    inquiry.say("is it a dead letter?", "not one of the newest " + count(kStreamsExaminedMax) +
                                            "; list the older ones, of which there are " +
                                            count(all.dead.all.used() - kStreamsExaminedMax));
  return inquiry.take();
}

}  // namespace baton::core
