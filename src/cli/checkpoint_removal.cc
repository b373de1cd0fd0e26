// Commands that remove checkpoints, or keep them from being removed.
#include <fmt/format.h>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "cli/checkpoint_actions.h"
#include "cli/checkpoint_report.h"
#include "cli/progress.h"
#include "cli/quantities.h"
#include "cli/table.h"

namespace baton::cli {

using namespace checkpoint;

namespace {

// Of files, and nobody knows how many it will be.
class RemovalBar {
 public:
  Removing shown() {
    return [this](const Removed& removed) { progress_.show(removed.files.size(), 0, 0); };
  }
  void clear() { progress_.clear(); }

 private:
  cli::Progress progress_{"files"};
};

// Whatever became of the checkpoint that is called so, by any of its names.
std::string prefix_of(Storage& storage, const std::string& name) {
  if (auto search = CheckpointSearch::begin(storage, name)) {
    if (const auto newest = search->next()) return newest->id.prefix;
  }
  const auto step = number_in(name);
  return step ? step_prefix(*step) : name.substr(0, name.find('/'));
}

// What `ls` goes on to show, and why.
void tell_left(const Removed& removed, Duration abandoned_after) {
  if (removed.young > 0)
    fmt::print("leaves {}: a sign of life within {}, so it may be under way (--abandoned-after)\n",
               counted(removed.young, "unfinished save"), time_text(abandoned_after));
  if (removed.remembered > 0)
    fmt::print("leaves {}: that a save was given up is remembered for {}\n",
               counted(removed.remembered, "aborted attempt"), time_text(kRememberedFor));
}

void tell_pinned(const std::string& prefix, bool is_pinned, const CheckpointOptions& options) {
  if (options.json) {
    fmt::print("{}\n", JsonObject().text("checkpoint", prefix).boolean("pinned", is_pinned).whole());
  } else {
    fmt::print("{} {}\n", prefix, is_pinned ? "is kept until it is unpinned" : "may be pruned");
  }
}

}  // namespace

int prune_checkpoints(Storage& storage, const CheckpointOptions& options) {
  RemovalBar bar;
  const auto removed = prune(storage, options.policy, options.really(), bar.shown());
  bar.clear();
  if (!removed) return complain(removed.error(), options);
  if (!options.json) {
    for (const Fate& fate : removed->fates)
      fmt::print("{} {}: {}\n", fate.is_kept ? "keep  " : "remove", to_text(fate.id), fate.why);
  }
  print_removed(*removed, options.really(), options.format());
  return 0;
}

int collect_checkpoint_garbage(Storage& storage, const CheckpointOptions& options) {
  RemovalBar bar;
  const auto removed =
      collect_garbage(storage, options.abandoned_after, wall_clock().ms, options.really(), bar.shown());
  bar.clear();
  if (!removed) return complain(removed.error(), options);
  if (!options.json) {
    for (const CheckpointId& id : removed->checkpoints) fmt::print("{}\n", to_text(id));
  }
  print_removed(*removed, options.really(), options.format());
  if (!options.json) tell_left(*removed, options.abandoned_after);
  return 0;
}

int pin_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options);
  const auto pinned = pin(storage, metadata->id.prefix);
  if (!pinned) return complain(pinned.error(), options);
  tell_pinned(metadata->id.prefix, true, options);
  return 0;
}

// Also one that is damaged, or gone.
int unpin_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const std::string prefix = prefix_of(storage, options.name);
  if (const auto metadata = find_checkpoint(storage, options.name); !metadata) {
    if (!check_prefix(prefix) || !storage.get(pin_path(prefix))) return complain(metadata.error(), options);
  }
  if (const auto unpinned = unpin(storage, prefix); !unpinned) return complain(unpinned.error(), options);
  tell_pinned(prefix, false, options);
  return 0;
}

}  // namespace baton::cli
