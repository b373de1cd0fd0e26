#include "tests/crash/expectation.h"

#include <fmt/format.h>

#include <sstream>

#include "base/check.h"
#include "core/ids.h"
#include "core/task/task.h"
#include "tests/crash/vocabulary.h"

namespace baton::crash {
namespace {

constexpr std::int64_t kClockSlackMs = 10;  // two clocks, each cut to milliseconds
constexpr std::size_t kComplaintsMax = 10;

std::vector<std::string> split(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// "k.12.0.7" is the submission number 7 of "k.12.0".
std::pair<std::string, std::uint64_t> split_key(const std::string& key) {
  const auto dot = key.rfind('.');
  if (dot == std::string::npos) return {key, 0};
  return {key.substr(0, dot), std::stoull(key.substr(dot + 1))};
}

std::pair<std::uint64_t, std::uint64_t> fence(const std::string& lease) {
  const auto id = core::parse_lease_id(lease);
  BATON_CHECK(id.has_value());
  return {id->epoch, id->lsn};
}

const std::string kCompleted = std::to_string(static_cast<int>(core::Ended::completed));
const std::string kFailed = std::to_string(static_cast<int>(core::Ended::failed));

}  // namespace

void Expectation::complain(std::uint64_t& counter, const char* kind, const std::string& what) {
  ++counter;
  if (tally_.complaints.size() < kComplaintsMax)
    tally_.complaints.push_back(fmt::format("{}: {}", kind, what));
}
void Expectation::lose(const std::string& what) { complain(tally_.lost, "lost", what); }
void Expectation::invent(const std::string& what) { complain(tally_.phantom, "phantom", what); }

bool Expectation::take(const std::string& line) {
  const Words words = split(line);
  if (words.empty()) return false;
  if (words[0] == "T") {
    BATON_CHECK(words.size() == 10);
    if (!recovered_
             .emplace(words[1], Recovered{words[1], words[2], words[3], words[4], words[6], words[7],
                                          words[8], words[9]})
             .second) {
      invent(words[1] + " is there twice");
    }
    return false;
  }
  if (words[0] == "Q") {
    recovered_paused_ = words[1] == kPaused;
    return false;
  }
  if (words[0] == "R") {
    compare(std::stoll(words[1]));
    return true;
  }
  take_ack(words);
  return false;
}

void Expectation::take_ack(const Words& words) {
  const std::string& what = words[0];
  if (what.ends_with('?')) {
    if (what == "k?") cancelling_.insert(words[1]);
    if (what == "p?") paused_.insert(words[1] == "1");
    if (what == "z?") purging_ = true;
    if (what == "c?" || what == "f?" || what == "l?") {
      Task& task = tasks_[words[1]];
      task.holds[fence(words[2])].may_have_ended = true;
      if (what == "c?") task.completing.insert(words[2]);
      if (what == "f?") task.failing = true;
    }
    return;
  }
  if (what == "x") {
    ++tally_.refused;
    if (words[1] == "s" || words[1] == "r") {
      ++attempted_[split_key(words[3]).first];
      refused_.insert(words[3]);
    }
    return;
  }
  ++tally_.acks;
  if (what == "s" || what == "r") return take_submitted(words, what == "r");
  if (what == "g" || what == "e") {
    Task& task = tasks_[words[1]];
    Hold& hold = task.holds[fence(words[2])];
    hold.lease = words[2];
    hold.deadline = std::max<std::int64_t>(hold.deadline, std::stoll(words[4]) + std::stoll(words[3]));
    if (what == "g") hold.answered = std::stoll(words[5]);
    // The submitter's line may come later than this one; then the payload is checked in the next report.
    if (what == "g" && !task.key.empty() && words[6] != hash_text(payload_of(origin(task.key)))) {
      lose(words[1] + " was handed out with other bytes than it was submitted with");
    }
    return;
  }
  if (what == "k") {
    if (const auto id = ids_.find(words[1]); id != ids_.end()) tasks_[id->second].cancelled = true;
    return;
  }
  if (what == "p") paused_ = {words[1] == "1"};
  if (what == "n") ++tally_.snapshots;
  if (what == "c" || what == "f" || what == "l") take_settled(words);
}

void Expectation::take_submitted(const Words& words, bool is_requeue) {
  const std::string& key = words[1];
  const std::string& id = words[2];
  const auto [known, is_new] = ids_.emplace(key, id);
  if (known->second != id) return invent(fmt::format("{} was {} and now is {}", key, known->second, id));
  const auto [family, number] = split_key(key);
  attempted_[family] = std::max(attempted_[family], number + 1);
  if (is_requeue) {
    if (const auto old = tasks_.find(words[3]); old != tasks_.end()) requeued_[key] = old->second.key;
  }
  tasks_[id].key = key;
  tasks_[id].acked = true;
}

void Expectation::take_settled(const Words& words) {
  Task& task = tasks_[words[1]];
  const std::string& outcome = words[3];
  if (outcome == "cancelled") return;
  if (words[0] == "c") {
    if (outcome != kCompleted) lose(words[1] + " was told another outcome than completed");
    if (!task.completed.empty() && task.completed != words[2]) {
      complain(tally_.doubly_valid, "completed twice", words[1]);
    }
    task.completed = words[2];
    ++tally_.completions;
  }
  if (words[0] == "f" && outcome == kFailed) task.failed = true;
}

std::string Expectation::origin(const std::string& key) const {
  const auto old = requeued_.find(key);
  return old == requeued_.end() ? key : origin(old->second);
}

void Expectation::end_round() {
  for (const auto& [id, task] : tasks_) check_holds(id, task);
  recovered_.clear();  // of a process that was killed in the middle of its report
  recovered_paused_ = false;
}

// Two workers that both believe to hold a task: the first has not given it up, its time is not over, and the
// second has its answer.
void Expectation::check_holds(const std::string& id, const Task& task) {
  const Hold* before = nullptr;
  for (const auto& [order, hold] : task.holds) {
    if (hold.lease.empty()) continue;
    if (before != nullptr && !before->may_have_ended && hold.answered + kClockSlackMs < before->deadline) {
      complain(tally_.doubly_valid, "held twice",
               fmt::format("{} by {} and {}", id, before->lease, hold.lease));
    }
    before = &hold;
    if (!task.completed.empty() && order > fence(task.completed)) {
      complain(tally_.doubly_valid, "handed out after its completion", id);
    }
  }
}

}  // namespace baton::crash
