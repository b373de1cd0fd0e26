// Which combinations the generator has reached: what was asked, in which state the task was, what the lease
// was to the task, whether it was asked again, and whether the coordinator had restarted in between. A fault
// hides in the combination that nobody tried.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.h"
#include "tests/sim/history.h"

namespace baton::sim {

enum class Op : std::uint8_t { extend, extend_many, complete, fail, release, cancel, requeue, count };
enum class Found : std::uint8_t { waiting, leased, completed, failed, dead, gone, count };
enum class Relation : std::uint8_t {
  current,
  lapsed,   // expired, and not yet recorded
  expired,  // and recorded
  old,      // ended in another way
  other,    // of another task
  unknown,  // invented
  none,     // the operation names no lease
  count
};

std::string_view name_of(Op op);
std::string_view name_of(Found found);
std::string_view name_of(Relation relation);

struct Cell {
  Op op = Op::extend;
  Found found = Found::waiting;
  Relation relation = Relation::none;
  bool again = false;      // a retry
  bool restarted = false;  // the task is from before the last start
};

Found found(const History& history, core::TaskId task);
Relation relation(const History& history, const SecretKey& key, core::TaskId task, const core::LeaseId& lease,
                  Instant now);

class Coverage {
 public:
  // Called before the request is decided.
  void count(const core::Request& request, const History& history, const SecretKey& key, Instant now,
             core::Epoch epoch, bool again);
  void add(const Coverage& other);
  std::string table() const;
  std::vector<std::string> missing() const;  // cells that can be reached and were not

  static constexpr std::size_t kCells = static_cast<std::size_t>(Op::count) *
                                        static_cast<std::size_t>(Found::count) *
                                        static_cast<std::size_t>(Relation::count) * 4;
  std::array<std::uint64_t, kCells> counts{};

 private:
  std::uint64_t& at(const Cell& cell);
};

// Why no run can ever reach this cell; empty if one can.
std::string_view why_unreachable(const Cell& cell);

}  // namespace baton::sim
