// The coordinator itself and PostgreSQL are asked the same, call after call, and have to answer the same.
#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/stream/happenings.h"
#include "tests/stream/random_calls.h"

namespace baton::stream {
namespace {

// Everything but the epoch, which each counts in its own way. Within a stream there is an order, and no
// other.
std::string in_words(std::vector<Work> work) {
  std::ranges::stable_sort(work, {}, [](const Work& one) {
    return std::tuple(one.lane, one.stream, one.stream ? MessageId{} : one.message);
  });
  std::ostringstream out;
  for (const Work& one : work) {
    out << (one.lane == Lane::outbox ? "out " : "in ") << to_text(one.message.value) << " in "
        << (one.stream ? to_text(one.stream->value) : "none") << '/' << one.partition << '/' << one.sequence
        << " status " << static_cast<int>(one.status) << " flags " << static_cast<int>(one.flags)
        << " deliveries " << one.deliveries << " failures " << one.failures << " reason "
        << static_cast<int>(one.reason) << ' ' << one.error << " to " << one.target << ' ' << one.type << ' '
        << one.envelope_type << ' ' << one.data << ' ' << one.metadata << ' ' << one.scope << '\n';
  }
  return out.str();
}

// Whether it is new or was lost before is said when it is handed out.
std::vector<Work> without_flags(std::vector<Work> work) {
  for (Work& one : work) one.flags = WorkFlags::none;
  return work;
}

std::string in_words(const Standing& standing) {
  return "rank " + std::to_string(standing.rank) + " of " + std::to_string(standing.active) + '\n';
}

std::string in_words(const WorkBatch& batch) {
  std::string said = in_words(batch.standing);
  for (const ListOfVerdicts& list : kLists) said += in_words(batch.*list.verdicts);
  return said + in_words(batch.work);
}

template <class T>
std::string in_words(const Result<T>& answer) {
  return answer ? in_words(*answer) : std::string(word(answer.error().code));
}

// Each of the two with what it has handed out, by service.
struct Side {
  explicit Side(const BackendKind& kind) : backend(kind.make()) {
    for (unsigned i = 0; i < 5; ++i)
      people.push_back(std::make_unique<Person>(*backend, 1 + i, i < 3 ? "orders" : "payments"));
  }
  // Puts in the epochs that are this side's.
  void fill(const std::string& service, Lane lane, Held& held) {
    if (!held.epoch) return;
    const std::vector<Epoch>& known = epochs[{service, lane, held.message}];
    const auto before = static_cast<std::size_t>(-held.epoch->value);
    held.epoch = before <= known.size() ? std::optional(known[known.size() - before]) : std::nullopt;
  }
  WorkBatchRequest with_epochs(WorkBatchRequest request) {
    const std::string& service = request.instance.service;
    for (Completion& item : request.outbox_completions) fill(service, Lane::outbox, item.held);
    for (Completion& item : request.inbox_completions) fill(service, Lane::inbox, item.held);
    for (Failure& item : request.outbox_failures) fill(service, Lane::outbox, item.held);
    for (Failure& item : request.inbox_failures) fill(service, Lane::inbox, item.held);
    for (Held& item : request.outbox_renewals) fill(service, Lane::outbox, item);
    for (Held& item : request.inbox_renewals) fill(service, Lane::inbox, item);
    return request;
  }
  void note(const std::string& service, const std::vector<Work>& work) {
    for (const Work& one : work) epochs[{service, one.lane, one.message}].push_back(one.epoch);
  }

  std::unique_ptr<Backend> backend;
  std::vector<std::unique_ptr<Person>> people;
  std::map<std::tuple<std::string, Lane, MessageId>, std::vector<Epoch>> epochs;
};

// One conversation with both.
class Conversation {
 public:
  Conversation(unsigned seed, Happenings& happenings) : calls_(seed), happenings_(happenings), hands_(5) {}

  void go_on() {
    const unsigned who = calls_.below(5);
    if (calls_.one_in(4)) let_time_pass(calls_.one_in(20) ? 15 : 1);
    const WorkBatchRequest request = calls_.next(embedded_.people[who]->me, hands_[who]);
    if (calls_.one_in(4)) {
      ask_for_a_part(who, request);
    } else {
      ask_for_all(who, request);
    }
    if (request.lease == kShortLease) let_time_pass(1);
    if (calls_.one_in(20))
      (void)ask(who, [](Side&, Person& person) -> Result<std::vector<Work>> {
        auto held = person.coordinator->resume(person.me.id);
        return held ? without_flags(*held) : held;
      });
    if (!calls_.is_choosy() && calls_.one_in(25)) {
      const int replayed = embedded_.backend->replay_dead_letters();
      ASSERT_EQ(replayed, database_.backend->replay_dead_letters());
      happenings_.count("dead letters replayed", replayed > 0);
    }
    if (calls_.one_in(30) && !is_evicted_) leave(who);
    begin_anew_if_evicted(who);
  }

 private:
  void let_time_pass(int pauses) {
    for (Side* side : {&embedded_, &database_}) side->backend->let_time_pass({kPause.ms * pauses});
  }

  // The answer of the first, which is that of the second.
  template <class Ask>
  std::invoke_result_t<Ask, Side&, Person&> ask(unsigned who, const Ask& question) {
    auto one = question(embedded_, *embedded_.people[who]);
    const auto other = question(database_, *database_.people[who]);
    EXPECT_EQ(in_words(one), in_words(other));
    if (!one && one.error().code == Errc::lease_lost) is_evicted_ = true;
    return one;
  }

  void ask_for_all(unsigned who, const WorkBatchRequest& request) {
    const auto answer = ask(who, [&](Side& side, Person& person) {
      auto batch = person.coordinator->process_work_batch(side.with_epochs(request));
      if (batch) side.note(person.me.service, batch->work);
      return batch;
    });
    if (!answer) return;
    happenings_.count(request, *answer);
    forget(who, Lane::outbox, request.outbox_completions, answer->outbox_completions);
    forget(who, Lane::inbox, request.inbox_completions, answer->inbox_completions);
    forget(who, Lane::outbox, request.outbox_failures, answer->outbox_failures);
    forget(who, Lane::inbox, request.inbox_failures, answer->inbox_failures);
    take(who, answer->work);
  }

  // The parts are functions of their own in SQL.
  void ask_for_a_part(unsigned who, const WorkBatchRequest& all) {
    const Lane lane = calls_.one_in(2) ? Lane::outbox : Lane::inbox;
    const bool is_outbox = lane == Lane::outbox;
    switch (calls_.below(7)) {
      case 0: {
        const auto standing = ask(who, [&](Side&, Person& person) {
          return person.coordinator->heartbeat(all.instance, all.stale);
        });
        return happenings_.count("part: heartbeat", standing.has_value());
      }
      case 1: {
        const auto& messages = is_outbox ? all.new_outbox_messages : all.new_inbox_messages;
        return verdicts(who, "store", [&](Side&, Person& person) {
          return person.coordinator->store(person.me.id, lane, messages, all.partitions);
        });
      }
      case 2: {
        const auto claim = claim_of(all).value_or(ClaimRequest{.lease = all.lease, .stale = all.stale});
        const auto work = ask(who, [&](Side& side, Person& person) {
          auto claimed = person.coordinator->claim(person.me.id, claim);
          if (claimed) side.note(person.me.service, *claimed);
          return claimed;
        });
        if (work) take(who, *work);
        return happenings_.count("part: claim", work && !work->empty());
      }
      case 3:
        return verdicts(who, "complete", [&](Side& side, Person& person) {
          const auto request = side.with_epochs(all);
          return person.coordinator->complete(
              person.me.id, lane, is_outbox ? request.outbox_completions : request.inbox_completions,
              all.flags);
        });
      case 4:
        return verdicts(who, "fail", [&](Side& side, Person& person) {
          const auto request = side.with_epochs(all);
          return person.coordinator->fail(person.me.id, lane,
                                          is_outbox ? request.outbox_failures : request.inbox_failures);
        });
      case 5:
        return verdicts(who, "renew", [&](Side& side, Person& person) {
          const auto request = side.with_epochs(all);
          return person.coordinator->renew(
              person.me.id, lane, is_outbox ? request.outbox_renewals : request.inbox_renewals, all.lease);
        });
      default:
        return verdicts(who, "release", [&](Side& side, Person& person) {
          const auto request = side.with_epochs(all);
          return person.coordinator->release(person.me.id, lane,
                                             is_outbox ? request.outbox_renewals : request.inbox_renewals);
        });
    }
  }

  template <class Ask>
  void verdicts(unsigned who, const char* part, const Ask& question) {
    const auto answer = ask(who, question);
    happenings_.count(std::string("part: ") + part, answer && std::ranges::count(*answer, Verdict::ok) > 0);
  }

  // Whoever leaves is forgotten, and may come again.
  void leave(unsigned who) {
    for (Side* side : {&embedded_, &database_})
      EXPECT_TRUE(side->people[who]->coordinator->leave(side->people[who]->me.id));
    happenings_.count("somebody leaves with full hands",
                      !hands_[who][Lane::outbox].empty() || !hands_[who][Lane::inbox].empty());
    hands_[who].clear();
  }

  void begin_anew_if_evicted(unsigned who) {
    happenings_.count("somebody is evicted", is_evicted_);
    if (!std::exchange(is_evicted_, false)) return;
    const unsigned number = 10 + next_number_++;
    for (Side* side : {&embedded_, &database_})
      side->people[who] = std::make_unique<Person>(*side->backend, number, side->people[who]->me.service);
    hands_[who].clear();
  }

  // What somebody holds, roughly: it is only there to ask good questions.
  void take(unsigned who, const std::vector<Work>& work) {
    for (const Work& one : work) hands_[who][one.lane].insert(one.message);
  }
  template <class Report>
  void forget(unsigned who, Lane lane, const std::vector<Report>& reports,
              const std::vector<Verdict>& heard) {
    for (std::size_t i = 0; i < heard.size(); ++i)
      if (heard[i] != Verdict::ok || calls_.one_in(2)) hands_[who][lane].erase(reports[i].held.message);
  }

  RandomCalls calls_;
  Happenings& happenings_;
  Side embedded_{embedded_backend()}, database_{postgres_backend()};
  std::vector<RandomCalls::Hands> hands_;
  unsigned next_number_ = 0;
  bool is_evicted_ = false;
};

// S1 to S18
TEST(BothImplementations, AnswerRandomCallsInTheSameWay) {
  Happenings happenings;
  const unsigned seeds = std::getenv("BATON_LONG") != nullptr ? 200 : 6;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    Conversation conversation(seed, happenings);
    for (int step = 0; step < 150; ++step) {
      conversation.go_on();
      ASSERT_FALSE(HasFailure()) << "seed " << seed << ", step " << step;
    }
  }
  happenings.expect_all();
}

}  // namespace
}  // namespace baton::stream
