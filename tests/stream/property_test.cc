// The coordinator itself and PostgreSQL are asked the same, call after call, and have to answer the same.
#include <algorithm>
#include <random>
#include <sstream>

#include "tests/stream/people.h"

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
        << static_cast<int>(one.reason) << ' ' << one.error << '\n';
  }
  return out.str();
}

// Whether it is new or was lost before is said when it is handed out.
std::vector<Work> without_flags(std::vector<Work> work) {
  for (Work& one : work) one.flags = WorkFlags::none;
  return work;
}

std::string in_words(const Result<WorkBatch>& answer) {
  if (!answer) return std::string(word(answer.error().code));
  std::ostringstream out;
  out << "rank " << answer->standing.rank << " of " << answer->standing.active << '\n';
  for (const auto* list :
       {&answer->outbox_completions, &answer->inbox_completions, &answer->outbox_failures,
        &answer->inbox_failures, &answer->receptor_completions, &answer->receptor_failures,
        &answer->perspective_completions, &answer->perspective_failures, &answer->outbox_renewals,
        &answer->inbox_renewals, &answer->new_outbox_messages, &answer->new_inbox_messages}) {
    for (const Verdict verdict : *list) PrintTo(verdict, &out), out << ' ';
    out << '\n';
  }
  return out.str() + in_words(answer->work);
}

// Each of the two with what it has handed out.
struct Side {
  explicit Side(const BackendKind& kind) : backend(kind.make()) {
    for (unsigned i = 0; i < 3; ++i) people.push_back(std::make_unique<Person>(*backend, 1 + i));
  }
  std::unique_ptr<Backend> backend;
  std::vector<std::unique_ptr<Person>> people;
  std::map<std::pair<Lane, MessageId>, Epoch> epochs;  // of the last time
};

class Questions {
 public:
  explicit Questions(unsigned seed) : dice_(seed) {}
  unsigned below(unsigned limit) { return static_cast<unsigned>(dice_()) % limit; }
  bool one_in(unsigned many) { return below(many) == 0; }

  // Without the epochs, which are not the same on both sides; `named` says which items want theirs.
  WorkBatchRequest next(const Instance& who, std::vector<bool>& named) {
    WorkBatchRequest request{.instance = who, .lease = seconds(25)};
    request.limits.streams = one_in(2) ? 2 : 300;
    const auto held = [&]() -> Held {
      named.push_back(!one_in(4));
      return {message(1 + below(40)), {}};
    };
    for (auto* list : {&request.outbox_completions, &request.inbox_completions}) {
      for (unsigned left = below(5); left > 0; --left)
        list->push_back({held(), static_cast<MessageStatus>(below(8))});
    }
    for (auto* list : {&request.outbox_failures, &request.inbox_failures}) {
      for (unsigned left = below(3); left > 0; --left) {
        list->push_back({.held = held(), .error = "it broke", .reason = FailureReason::validation_error});
        if (one_in(4)) list->back().policy = static_cast<FailurePolicy>(below(3));
      }
    }
    for (auto* list : {&request.outbox_renewals, &request.inbox_renewals}) {
      if (one_in(4)) list->push_back(held());
    }
    for (auto* list : {&request.new_outbox_messages, &request.new_inbox_messages}) {
      for (unsigned left = below(4); left > 0; --left) list->push_back(new_message());
    }
    if (one_in(3)) request.receptor_completions = {{message(1 + below(9)), "mail"}};
    if (one_in(3))
      request.receptor_failures = {{.event = message(1 + below(9)),
                                    .receptor = "mail",
                                    .error = "no",
                                    .attempt = static_cast<std::int32_t>(1 + below(3))}};
    if (one_in(3)) {
      request.perspective_completions = {
          {.stream = stream(1 + below(4)), .perspective = "totals", .last_event = message(1 + below(40))}};
      if (one_in(2))
        request.perspective_completions[0].processed = {message(1 + below(40)), message(1 + below(40))};
    }
    if (one_in(4))
      request.perspective_failures = {{.stream = stream(1 + below(4)),
                                       .perspective = "totals",
                                       .last_event = message(1 + below(40)),
                                       .error = "it broke"}};
    if (one_in(6)) request.flags = WorkFlags::skip_inbox_claiming;
    if (one_in(8)) request.flags = request.flags | WorkFlags::debug_mode;
    return request;
  }

 private:
  NewMessage new_message() {
    const unsigned number = 1 + below(40);
    NewMessage made = one_in(4) ? loose(number) : in_stream(number, 1 + number % 4);
    made.is_event = one_in(3);
    if (one_in(8)) made.policy = static_cast<FailurePolicy>(below(3));
    return made;
  }
  std::minstd_rand dice_;
};

// Puts in the epochs under which this side has handed the messages out.
WorkBatchRequest with_epochs(WorkBatchRequest request, const Side& side, const std::vector<bool>& named) {
  std::size_t at = 0;
  const auto fill = [&](Lane lane, Held& held) {
    const auto found = side.epochs.find({lane, held.message});
    if (named[at++] && found != side.epochs.end()) held.epoch = found->second;
  };
  for (Completion& item : request.outbox_completions) fill(Lane::outbox, item.held);
  for (Completion& item : request.inbox_completions) fill(Lane::inbox, item.held);
  for (Failure& item : request.outbox_failures) fill(Lane::outbox, item.held);
  for (Failure& item : request.inbox_failures) fill(Lane::inbox, item.held);
  for (Held& item : request.outbox_renewals) fill(Lane::outbox, item);
  for (Held& item : request.inbox_renewals) fill(Lane::inbox, item);
  return request;
}

class BothImplementations : public testing::TestWithParam<unsigned> {};
// 4 found deliveries that were counted although nothing was handed out.
INSTANTIATE_TEST_SUITE_P(Seed, BothImplementations, testing::Values(1u, 2u, 3u, 4u, 5u, 6u));

// S1 to S18
TEST_P(BothImplementations, AnswerRandomCallsInTheSameWay) {
  Side embedded(embedded_backend()), database(postgres_backend());
  Questions questions(GetParam());
  for (int step = 0; step < 150; ++step) {
    const unsigned who = questions.below(3);
    if (questions.one_in(4)) {
      // Every time that means something lies well between two multiples of this, so that it does not matter
      // that the two sides are asked one after the other.
      const Duration pause{seconds(45).ms * (questions.one_in(20) ? 15 : 1)};
      for (Side* side : {&embedded, &database}) side->backend->let_time_pass(pause);
    }
    std::vector<bool> named;
    const WorkBatchRequest request = questions.next(embedded.people[who]->me, named);
    std::string said[2];
    for (Side* side : {&embedded, &database}) {
      const auto answer =
          side->people[who]->coordinator->process_work_batch(with_epochs(request, *side, named));
      said[side == &database] = in_words(answer);
      if (answer) {
        for (const Work& one : answer->work) side->epochs[{one.lane, one.message}] = one.epoch;
      } else if (answer.error().code == Errc::lease_lost) {
        side->people[who] = std::make_unique<Person>(*side->backend, 10 + static_cast<unsigned>(step));
      }
    }
    ASSERT_EQ(said[0], said[1]) << "step " << step;
    if (questions.one_in(20)) {
      const auto held = embedded.people[who]->coordinator->resume(embedded.people[who]->me.id);
      const auto too = database.people[who]->coordinator->resume(database.people[who]->me.id);
      ASSERT_EQ(held.has_value(), too.has_value()) << "step " << step;
      if (held) {
        ASSERT_EQ(in_words(without_flags(*held)), in_words(without_flags(*too))) << "step " << step;
      } else {
        ASSERT_EQ(held.error().code, too.error().code) << "step " << step;
      }
    }
    if (questions.one_in(30)) {
      for (Side* side : {&embedded, &database})
        EXPECT_TRUE(side->people[who]->coordinator->leave(side->people[who]->me.id));
    }
  }
}

}  // namespace
}  // namespace baton::stream
