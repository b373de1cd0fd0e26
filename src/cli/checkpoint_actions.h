// What the commands about checkpoints do. Each returns the exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/retention.h"
#include "checkpoint/storage.h"
#include "cli/complaint.h"

namespace baton::cli {

struct CheckpointOptions {
  std::string directory;
  std::string name;
  std::string other;
  std::optional<std::string> maybe_name;
  std::vector<std::string> files;
  bool json = false;
  bool flat = false;
  bool sha256 = false;
  bool dry_run = false;
  checkpoint::RetentionPolicy policy;
  Duration abandoned_after = checkpoint::kAbandonedAfter;
  std::uint64_t step = 0;
  std::uint32_t ranks = 1;
  std::uint64_t mebibytes = 1024;
  int exit_if_refused = kExitRefused;

  Format format() const { return format_of(json); }
  checkpoint::Really really() const { return dry_run ? checkpoint::Really::no : checkpoint::Really::yes; }
};

// Says it, and returns the exit code: 2 if something is damaged, whatever the command.
int complain(const Error& error, const CheckpointOptions& options);

int list_checkpoints(checkpoint::Storage& storage, const CheckpointOptions& options);
int inspect_checkpoint(checkpoint::Storage& storage, const CheckpointOptions& options);
int verify_checkpoints(checkpoint::Storage& storage, const CheckpointOptions& options);
int diff_checkpoints(checkpoint::Storage& storage, const CheckpointOptions& options);
int export_checkpoint(checkpoint::Storage& storage, const CheckpointOptions& options);
int import_checkpoint(checkpoint::Storage& storage, const CheckpointOptions& options);
int reshard_checkpoint(checkpoint::Storage& storage, const CheckpointOptions& options);
int prune_checkpoints(checkpoint::Storage& storage, const CheckpointOptions& options);
int collect_checkpoint_garbage(checkpoint::Storage& storage, const CheckpointOptions& options);
int pin_checkpoint(checkpoint::Storage& storage, const CheckpointOptions& options);
int unpin_checkpoint(checkpoint::Storage& storage, const CheckpointOptions& options);
int bench_checkpoints(checkpoint::Storage& storage, const CheckpointOptions& options);

}  // namespace baton::cli
