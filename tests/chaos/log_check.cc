#include <fmt/format.h>

#include <map>
#include <set>

#include "tests/chaos/checks.h"

namespace baton::chaos {
namespace {

// A task as the entries tell it, by rules written down here once more.
struct TaskNow {
  std::string state = "waiting";
  std::string key;
  Lsn lease = 0;  // while it is leased, and of its completion
  std::uint32_t attempt = 0;
  std::set<Lsn> failed_under;

  bool is_held_under(Lsn which) const { return state == "leased" && lease == which; }
};

class LogCheck {
 public:
  LogCheck(const std::vector<Operation>& history, const Log& log) : history_(history), log_(log) {}

  Complaints run() {
    note_what_was_asked();
    for (const Entry& entry : log_) {
      apply(entry);
      for (auto [at, end] = replies_.equal_range(entry.lsn); at != end; ++at) compare(*at->second, entry);
    }
    const Lsn last = log_.empty() ? 0 : log_.back().lsn;
    for (auto at = replies_.upper_bound(last); at != replies_.end(); ++at)
      complain("{} was told lsn {}, and the log ends at {}", at->second->who, at->first, last);
    for (const auto& [lease, operation] : grants_)
      complain("{} was given task {} under {}, which is not in the log", operation->who, operation->task,
               lease);
    return std::move(complaints_);
  }

 private:
  template <class... Values>
  void complain(fmt::format_string<Values...> form, Values&&... values) {
    complaints_.push_back(fmt::format(form, std::forward<Values>(values)...));
  }

  void note_what_was_asked() {
    for (const Operation& o : history_) {
      if (o.outcome == Outcome::done && o.lsn != 0) replies_.emplace(o.lsn, &o);
      if (o.outcome == Outcome::absent) continue;
      // The library repeats an extension whose answer it missed: the first may have come in time, and the
      // second too late.
      if (o.outcome == Outcome::refused && o.kind != Kind::extend) continue;
      if (o.kind == Kind::submit) keys_.insert(o.key);
      if (o.kind == Kind::lease && o.outcome == Outcome::unknown) ++unheard_leases_[o.who];
      if (o.kind == Kind::lease && o.outcome == Outcome::done && o.lease != 0) grants_[o.lease] = &o;
      if (o.lease != 0) asked_.insert({o.kind, o.task, o.lease});
    }
    granted_ = grants_;
  }

  bool is_asked(Kind kind, const Entry& entry) const {
    return asked_.contains({kind, entry.task, entry.lease});
  }

  // A lease whose worker hung up before it could be told is given back by the server itself.
  bool is_unheard(Lsn lease) const { return !granted_.contains(lease); }

  void apply(const Entry& entry) {
    if (entry.type == "TaskCreated") {
      if (!keys_.contains(entry.key)) complain("entry {}: nobody submitted '{}'", entry.lsn, entry.key);
      if (!created_.insert(entry.key).second) complain("entry {}: '{}' a second time", entry.lsn, entry.key);
      tasks_[entry.lsn].key = entry.key;
    } else if (entry.task != 0) {
      change(entry, tasks_[entry.task]);
    }
  }

  void change(const Entry& entry, TaskNow& task) {
    const auto demand = [&](bool legal) {
      if (!legal)
        complain("entry {}: {} of task {} under {}, which is {} under {}", entry.lsn, entry.type, entry.task,
                 entry.lease, task.state, task.lease);
    };
    if (entry.type == "LeaseGranted") {
      demand(task.state == "waiting" && entry.attempt == task.attempt + 1);
      attribute_grant(entry);
      task.state = "leased", task.lease = entry.lease, task.attempt = entry.attempt;
    } else if (entry.type == "LeaseExtended") {
      demand(task.is_held_under(entry.lease) && is_asked(Kind::extend, entry));
    } else if (entry.type == "LeaseExpired") {
      demand(task.is_held_under(entry.lease));
      task.state = "waiting";
    } else if (entry.type == "TaskCompleted") {
      demand(task.is_held_under(entry.lease) && is_asked(Kind::complete, entry));
      task.state = "completed";
    } else if (entry.type == "TaskFailed") {
      const bool given_back = entry.outcome == "released" && is_unheard(entry.lease);
      demand(task.is_held_under(entry.lease) && (given_back || is_asked(Kind::fail, entry)));
      task.failed_under.insert(entry.lease);
      task.state = entry.outcome == "failed" ? "failed" : "waiting";
    } else if (entry.type == "TaskCancelled") {
      demand(!task.is_held_under(entry.lease) &&
             (is_asked(Kind::complete, entry) || is_asked(Kind::fail, entry) || is_unheard(entry.lease)));
    } else if (entry.type == "TaskDead") {
      demand(task.state == "waiting" || task.state == "leased");
      task.state = "dead";
    }
  }

  void attribute_grant(const Entry& entry) {
    if (const auto known = grants_.find(entry.lease); known != grants_.end()) {
      const Operation& o = *known->second;
      if (o.who != entry.worker || o.task != entry.task || o.attempt != entry.attempt)
        complain("entry {}: {} got task {} (attempt {}), and {} was told so of task {} (attempt {})",
                 entry.lsn, entry.worker, entry.task, entry.attempt, o.who, o.task, o.attempt);
      grants_.erase(known);
    } else if (unheard_leases_[entry.worker]-- == 0) {
      complain("entry {}: {} got task {} and had not asked", entry.lsn, entry.worker, entry.task);
    }
  }

  void compare(const Operation& o, const Entry& entry) {
    const auto demand = [&](bool holds) {
      if (!holds)
        complain("{} was told '{}' of task {} under {} at {}, where it is {} under {}", o.who, o.word, o.task,
                 o.lease, o.lsn, tasks_[o.task].state, tasks_[o.task].lease);
    };
    if (o.task == 0) return;  // nothing was leased
    const TaskNow& task = tasks_[o.task];
    switch (o.kind) {
      case Kind::submit:
        demand(task.key == o.key && (o.existed || (entry.type == "TaskCreated" && entry.lsn == o.task)));
        break;
      case Kind::lease:
      case Kind::extend: demand(task.is_held_under(o.lease)); break;
      case Kind::complete:
        demand((task.state == "completed" && task.lease == o.lease) == (o.word == "COMMITTED") &&
               !task.is_held_under(o.lease));
        break;
      case Kind::fail:
        demand(task.failed_under.contains(o.lease) == (o.word == "COMMITTED") &&
               !task.is_held_under(o.lease));
        break;
      case Kind::get: demand(task.state == o.word); break;
      case Kind::write: break;
    }
  }

  struct Asked {
    Kind kind;
    Lsn task;
    Lsn lease;
    friend auto operator<=>(const Asked&, const Asked&) = default;
  };

  const std::vector<Operation>& history_;
  const Log& log_;
  std::multimap<Lsn, const Operation*> replies_;
  std::set<std::string> keys_;     // submitted, as far as anybody knows
  std::set<std::string> created_;  // in the log
  std::set<Asked> asked_;
  std::map<Lsn, const Operation*> grants_;  // told, and not yet found in the log
  std::map<Lsn, const Operation*> granted_;
  std::map<std::string, int> unheard_leases_;  // by worker
  std::map<Lsn, TaskNow> tasks_;
  Complaints complaints_;
};

}  // namespace

Complaints check_against_log(const std::vector<Operation>& history, const Log& log) {
  return LogCheck(history, log).run();
}

Totals check_totals(const std::vector<Operation>& history, const Log& log) {
  Totals totals;
  std::map<std::string, Lsn> task_of;
  std::map<Lsn, int> completions, grants;
  for (const Entry& entry : log) {
    if (entry.type == "TaskCreated") task_of[entry.key] = entry.lsn;
    if (entry.type == "TaskCompleted") ++completions[entry.task];
    if (entry.type == "LeaseGranted" && ++grants[entry.task] > 1) ++totals.repeated_work;
  }
  std::set<std::string> promised, possible;
  for (const Operation& o : history) {
    if (o.kind != Kind::submit) continue;
    if (o.outcome == Outcome::done) promised.insert(o.key);
    if (o.outcome == Outcome::unknown) possible.insert(o.key);
  }
  totals.submitted = promised.size();
  for (const std::string& key : promised) {
    const auto task = task_of.find(key);
    if (task != task_of.end() && completions[task->second] > 0) continue;
    ++totals.lost;
    totals.complaints.push_back(fmt::format("'{}' was acknowledged and never completed", key));
  }
  for (const auto& [key, task] : task_of) {
    if (promised.contains(key)) continue;
    ++(possible.contains(key) ? totals.recovered : totals.phantom);
    if (!possible.contains(key)) totals.complaints.push_back(fmt::format("nobody asked for '{}'", key));
  }
  for (const auto& [task, count] : completions) {
    if (count < 2) continue;
    ++totals.doubly_completed;
    totals.complaints.push_back(fmt::format("task {} was completed {} times", task, count));
  }
  return totals;
}

}  // namespace baton::chaos
