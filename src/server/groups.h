// The groups of ranks that meet here, and the operations that wait in them. None of it is recorded: the
// generation of a group that is new since this start is above all of earlier ones, and a group from before
// is put together by its ranks.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "group/group.h"

namespace baton::server {

class Operation;

class Groups {
 public:
  // What operations of all groups hold together; the largest that there may be fits in twice.
  static constexpr std::size_t kHeldBytesMax = 2 * group::kHeardBytesMax;

  // `epoch` is higher at every start.
  explicit Groups(std::uint32_t epoch, std::size_t held_bytes_max = kHeldBytesMax)
      : held_bytes_max_(held_bytes_max), last_(group::Generation{epoch} << 24) {}

  using Name = std::pair<std::string, std::string>;  // namespace and group

  Result<group::Generation> join(const Name& name, const group::Joining& joining, Instant now);
  Status resume(const Name& name, const group::Joining& joining, group::Generation generation,
                std::span<const group::Kept> kept, Instant now);
  void leave(const Name& name, const group::Seat& seat, Instant now);
  void stop(const Name& name, const group::Seat& seat, const std::string& stream, std::uint64_t number,
            Instant now);

  // Refused, or an answer follows. That of a watch may be a text: who is waited for.
  Status arrive(Operation& operation, const Name& name, const group::Seat& seat, group::Arrival arrival,
                Instant now);
  Status watch(Operation& operation, const Name& name, const group::Seat& seat,
               std::optional<std::string_view> doing, Instant deadline, Instant now);
  // Whoever asked is gone. Whether it waited.
  bool forget(Operation& operation, Instant now);

  struct Answered {
    Operation* operation;
    Result<group::Share> outcome;
  };
  std::vector<Answered> take(Instant now);
  std::vector<Answered> take_all(const Error& why);
  Instant next() const;  // when time alone will bring an answer

  const group::Group* find(const Name& name) const;
  std::vector<std::pair<std::string, const group::Group*>> all(std::string_view ns) const;

 private:
  struct Watch {
    group::Seat seat;
    Instant since;
    Instant deadline;
  };
  struct Entry {
    group::Group group;
    std::map<Operation*, Watch> watches;
    group::Generation watched = 0;      // that of all of them
    Instant first_deadline{INT64_MAX};  // of them, or earlier: looking for it takes as long as there are many
    Instant due{INT64_MAX};
    std::size_t held_bytes = 0;  // as counted
  };
  using Entries = std::map<Name, Entry>;
  struct Place {
    Entries::iterator entry;
    group::Seat seat;
    group::Waiter waiter = 0;  // none: it watches
  };

  Status check_room(const group::Joining& joining) const;
  Status check_held() const;
  void looked_at(Entries::iterator entry, Instant now);  // something happened there
  void answer(Operation& operation, Result<group::Share> outcome);

  const std::size_t held_bytes_max_;
  group::Generation last_;
  group::Waiter last_waiter_ = 0;
  Entries entries_;
  std::size_t held_bytes_ = 0;                     // by operations of all of them
  std::set<std::pair<Instant, const Name*>> due_;  // of all entries, by their keys
  std::map<group::Waiter, Operation*> waiters_;
  std::map<Operation*, Place> places_;  // who waits, and as whom
  std::vector<Answered> answered_;
};

}  // namespace baton::server
