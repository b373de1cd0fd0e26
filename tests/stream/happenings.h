// What calls by chance have brought about: a test of them is worth no more than that.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <sstream>
#include <string>

#include "tests/stream/people.h"

namespace baton::stream {

inline std::string in_words(const std::vector<Verdict>& verdicts) {
  std::ostringstream out;
  for (const Verdict verdict : verdicts) PrintTo(verdict, &out), out << ' ';
  return out.str() + '\n';
}

// The lists of an answer, each with what it can say.
struct ListOfVerdicts {
  const char* name;
  std::vector<Verdict> WorkBatch::* verdicts;
  std::initializer_list<Verdict> possible;
};
inline constexpr auto kReports = {Verdict::ok, Verdict::lost_lease, Verdict::unknown, Verdict::duplicate};
inline constexpr auto kRenewals = {Verdict::ok, Verdict::lost_lease, Verdict::unknown};
inline constexpr auto kOnce = {Verdict::ok, Verdict::duplicate};
inline constexpr auto kPlaces = {Verdict::ok, Verdict::unknown, Verdict::duplicate};
inline const ListOfVerdicts kLists[] = {
    {"outbox completion", &WorkBatch::outbox_completions, kReports},
    {"inbox completion", &WorkBatch::inbox_completions, kReports},
    {"outbox failure", &WorkBatch::outbox_failures, kReports},
    {"inbox failure", &WorkBatch::inbox_failures, kReports},
    {"receptor completion", &WorkBatch::receptor_completions, kOnce},
    {"receptor failure", &WorkBatch::receptor_failures, kOnce},
    {"perspective completion", &WorkBatch::perspective_completions, kPlaces},
    {"perspective failure", &WorkBatch::perspective_failures, kPlaces},
    {"outbox renewal", &WorkBatch::outbox_renewals, kRenewals},
    {"inbox renewal", &WorkBatch::inbox_renewals, kRenewals},
    {"new outbox message", &WorkBatch::new_outbox_messages, kOnce},
    {"new inbox message", &WorkBatch::new_inbox_messages, kOnce},
};

// Counted by name. A name that is counted with `false` is known from then on, and has to happen some day.
class Happenings {
 public:
  void count(const std::string& what) { ++counts_[what]; }
  void count(const std::string& what, bool happened) { counts_[what] += happened; }

  void count(const WorkBatchRequest& request, const WorkBatch& answer) {
    for (const ListOfVerdicts& list : kLists) {
      for (const Verdict verdict : list.possible) {
        const auto& got = answer.*list.verdicts;
        counts_[list.name + (": " + in_words(std::vector{verdict}))] += std::ranges::count(got, verdict);
      }
    }
    for (const Work& one : answer.work) count(one);
    std::array<std::int32_t, 2> messages{};
    std::map<std::pair<Lane, StreamId>, std::int32_t> streams;
    for (const Work& one : answer.work) {
      ++messages[one.lane == Lane::inbox];
      if (one.stream) ++streams[{one.lane, *one.stream}];
    }
    const auto is_at = [&](std::int32_t limit) {
      return std::ranges::find(messages, limit) != messages.end();
    };
    count("no more messages than wanted", request.limits.messages < 4 && is_at(request.limits.messages));
    count(
        "no more of a stream than wanted",
        request.limits.messages_per_stream < 3 &&
            std::ranges::any_of(
                streams, [&](const auto& one) { return one.second == request.limits.messages_per_stream; }));
    count("no more bytes than wanted", request.limits.bytes < 60 && is_at(1));
    count("no more streams than wanted", request.limits.streams == 1 && streams.size() == 2);
    count("no more partitions than wanted", request.partitions_max == 1 && !streams.empty());
    count("only the outbox", has(request.flags, WorkFlags::skip_inbox_claiming) && messages[0] > 0);
    count("only the inbox", has(request.flags, WorkFlags::skip_outbox_claiming) && messages[1] > 0);
    count("several instances", answer.standing.active > 2);
    const bool completes = std::ranges::count(answer.inbox_completions, Verdict::ok) > 0;
    count("done and kept", has(request.flags, WorkFlags::debug_mode) && completes);
  }

  void expect_all() const {
    for (const auto& [what, count] : counts_) EXPECT_GT(count, 0) << "it never happened: " << what;
  }

 private:
  void count(const Work& one) {
    count("work without a stream", !one.stream);
    count("work that is new", has(one.flags, WorkFlags::newly_stored));
    count("work that was lost", has(one.flags, WorkFlags::orphaned));
    count("work that was done in part",
          has(one.status, one.lane == Lane::outbox ? MessageStatus::event_stored : MessageStatus::published));
    count("work that failed more than once", one.failures > 1);
    count("work in few partitions", one.stream && one.partition < 7);
    count("an event without a destination", one.lane == Lane::outbox && one.target.empty());
    for (const FailureReason reason :
         {FailureReason::none, FailureReason::transport_not_ready, FailureReason::transport_exception,
          FailureReason::serialization_error, FailureReason::validation_error,
          FailureReason::max_attempts_exceeded, FailureReason::lease_expired,
          FailureReason::event_storage_failure, FailureReason::unknown})
      count("work that failed for reason " + std::to_string(static_cast<int>(reason)),
            one.failures > 0 && one.reason == reason);
  }

  std::map<std::string, std::ptrdiff_t> counts_;
};

}  // namespace baton::stream
