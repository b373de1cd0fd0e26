// Finds committed checkpoints, the newest first, without looking at more of a store than it has to: the names
// of steps are listed, and a manifest is read when its turn comes. So the newest of a thousand checkpoints
// costs two listings and one read, which matters where each is a request to a service. It keeps no manifest:
// one whose name tells no step is read to know its place, and again when that has come.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/catalog.h"
#include "checkpoint/metadata.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

class CheckpointSearch {
 public:
  // The name is "step-0000001000", with an attempt behind a slash or without, a step as a number, or "latest"
  // for all. The storage outlives the search.
  static Result<CheckpointSearch> begin(Storage& storage, const std::string& name);

  // The next older one that was committed, or should have been and cannot be read. None: that was all.
  std::optional<Attempt> next();

  Error nothing_found() const;

 private:
  struct Candidate {
    std::uint64_t step = 0;
    CheckpointId id;                 // without an attempt: all of this prefix, which is not listed yet
    std::optional<Attempt> attempt;  // if that is known to be unreadable
  };

  CheckpointSearch(Storage& storage, std::string name);
  bool is_of_one_name() const { return name_ != "latest" && !step_; }
  Status list();
  void add_prefix(const std::string& prefix);
  void add_attempts(const std::string& prefix);
  bool is_meant(const CheckpointId& id) const;

  Storage* storage_;
  std::string name_;
  std::optional<std::uint64_t> step_;  // if that is what the name is
  std::vector<Candidate> candidates_;  // the newest last
  bool is_outdated_ = false;           // something has gone since it was listed
  int lists_left_ = 3;                 // for that, until one is handed out
};

// The newest that a search finds.
Result<CheckpointMetadata> find_checkpoint(Storage& storage, const std::string& name);

}  // namespace baton::checkpoint
