#include "checkpoint/checkpoint_coordinator.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/atomic_commit_protocol.h"
#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/checkpoint_validator.h"
#include "checkpoint/references.h"
#include "checkpoint/reuse.h"
#include "checkpoint/save_check.h"
#include "checkpoint/save_exchange.h"
#include "checkpoint/save_plan.h"
#include "checkpoint/shard_file.h"
#include "checkpoint/with_memory.h"

namespace baton::checkpoint {
namespace {

std::vector<TensorInfo> slices_of(const ShardData& mine) {
  std::vector<TensorInfo> slices;
  slices.reserve(mine.tensors.size());
  for (const TensorSource& tensor : mine.tensors) slices.push_back(tensor.info);
  return slices;
}

Result<Announcement> announce(Rank rank, Storage& storage, const std::string& prefix,
                              const Result<ShardData>& mine, bool incremental) {
  if (!mine) return std::unexpected(mine.error());
  Announcement announcement{.slices = slices_of(*mine)};
  if (rank != 0) return announcement;
  auto id = new_attempt(storage, prefix);
  if (!id) return std::unexpected(id.error());
  announcement.attempt = id->attempt;
  if (incremental) {
    // Without one that can be read, everything is written.
    if (auto newest = find_checkpoint(storage, "latest"); newest && hold_files(storage, *id, *newest))
      announcement.base = newest->id;
  }
  return announcement;
}

Result<CheckpointMetadata> joined(Storage& storage, CheckpointMetadata metadata,
                                  const std::vector<Bytes>& reports) {
  for (Rank rank = 0; rank < reports.size(); ++rank) {
    auto report = brought_report(storage, text_of(reports[rank]));
    if (!report) return std::unexpected(report.error());
    for (ShardMetadata& shard : report->shards) metadata.shards.push_back(std::move(shard));
    for (const auto& [name, text] : report->objects) {
      const auto [there, is_new] = metadata.objects.emplace(name, text);
      if (!is_new && there->second != text)
        return failure(
            Errc::conflict,
            fmt::format("object \"{}\" of rank {} is not that of a lower rank; give it a name of its own",
                        name, rank));
    }
  }
  return metadata;
}

// Names and texts come from the program, and what cannot be read back must not become a checkpoint.
Status can_be_read_back(const CheckpointMetadata& metadata) {
  const auto parsed = MetadataSerializer::parse(MetadataSerializer::serialize(metadata), "the manifest");
  if (parsed) return {};
  return failure(Errc::invalid_request, parsed.error().message);
}

// What came of a save, as rank 0 tells it: nothing if it was committed.
Bytes encoded(const Error& error) {
  Bytes bytes;
  ByteWriter to(bytes);
  to.text(word(error.code));
  to.text(error.message);
  return bytes;
}

Status decoded(ByteView outcome, Rank world_size) {
  if (outcome.empty()) return {};
  ByteReader from(outcome);
  const Errc code = code_of(from.text()).value_or(Errc::io_failed);
  return failure(code, fmt::format("{}{}", world_size == 1 ? "" : "rank 0: ", from.text()));
}

}  // namespace

// What all ranks know after the first step.
struct CheckpointCoordinator::Ready {
  CheckpointId id;
  CheckpointId base;
  std::vector<Rank> aside;            // who has more slices than can be brought
  std::vector<std::size_t> to_write;  // of this rank's slices
  Status trouble;                     // of this rank alone; the others hear it once they have written
};

Call CheckpointCoordinator::call(const std::string& prefix, std::string_view step,
                                 const SaveOptions& options) const {
  return {.name = fmt::format("save {} {}", prefix.substr(0, kPrefixBytesMax), step),
          .deadline = options.deadline,
          .stop = options.stop};
}

Result<SaveResult> CheckpointCoordinator::coordinate_save(const std::string& prefix,
                                                          const LocalSave& local_save,
                                                          const SaveOptions& options) {
  // Whoever comes last waits for nobody, and would not notice there that it was stopped.
  const auto is_stopped = [&] { return options.stop.stop_requested(); };
  Result<ShardData> mine = with_memory("save", [&]() -> Result<ShardData> {
    auto saved = local_save();
    if (!saved) return saved;
    if (is_stopped()) return failure(Errc::closed, "it was stopped");
    Status fits = check_name(prefix, options.training.step);
    if (fits) fits = check_data(*saved);
    if (!fits) return std::unexpected(fits.error());
    return saved;
  });
  auto ready = get_ready(prefix, mine, options);
  if (!ready) return std::unexpected(ready.error());

  SaveResult result;
  const auto report = with_memory("save", [&]() -> Result<RankReport> {
    if (!ready->trouble) return std::unexpected(ready->trouble.error());
    if (is_stopped()) return failure(Errc::closed, "it was stopped");
    result.id = ready->id;
    return write(*ready, *mine, options, result);
  });
  const auto heard = with_memory("save", [&] {
    collective_.tell_saving("");
    return finish(*ready, report, options, result);
  });
  if (!heard) {
    // Without a name there is nothing to give up here; those who know it do.
    if (ready->id.attempt.empty()) return std::unexpected(heard.error());
    return with_memory("save", [&] { return give_up(ready->id, heard.error(), std::move(result)); });
  }
  if (!*heard) return std::unexpected(heard->error());
  return result;
}

Result<CheckpointCoordinator::Ready> CheckpointCoordinator::get_ready(const std::string& prefix,
                                                                      const Result<ShardData>& mine,
                                                                      const SaveOptions& options) {
  Ready ready;
  Result<Bytes> bytes = Bytes();
  auto announcement = with_memory(
      "save", [&] { return announce(collective_.rank(), storage_, prefix, mine, options.incremental); });
  if (announcement) {
    ready.id = {prefix, announcement->attempt};
    ready.base = announcement->base;
    bytes = with_memory("save",
                        [&]() -> Result<Bytes> { return encode(*announcement, collective_.world_size()); });
  } else {
    bytes = std::unexpected(announcement.error());
  }
  auto all = collective_.all_gather(call(prefix, "ready", options), brought(bytes));
  if (!all) return refused(ready, all.error());
  const auto planned =
      with_memory("save", [&]() -> Result<Status> { return plan(prefix, *all, *mine, options, ready); });
  if (!planned)
    ready.trouble = std::unexpected(planned.error());
  else if (!*planned)
    return refused(ready, planned->error());
  return ready;
}

Status CheckpointCoordinator::plan(const std::string& prefix, const std::vector<Bytes>& announcements,
                                   const ShardData& mine, const SaveOptions& options, Ready& ready) {
  std::vector<std::vector<TensorInfo>> by_rank;
  for (Rank rank = 0; rank < announcements.size(); ++rank) {
    auto heard = decode_announcement(announcements[rank]);
    if (!heard) return std::unexpected(heard.error());
    if (rank == 0) {
      ready.id = {prefix, heard->attempt};
      ready.base = heard->base;
    }
    if (heard->are_aside) ready.aside.push_back(rank);
    by_rank.push_back(std::move(heard->slices));
  }
  if (auto known = take_from_aside(ready, mine, options, by_rank); !known) return known;
  auto writers = assign_writers(by_rank);
  if (!writers) return std::unexpected(writers.error());
  ready.to_write = std::move((*writers)[collective_.rank()]);
  return {};
}

// Before shards are written there is something to remove only if this was to be based on another checkpoint,
// or slices lie aside.
std::unexpected<Error> CheckpointCoordinator::refused(const Ready& ready, const Error& why) {
  if (!ready.base.prefix.empty() || !ready.aside.empty())
    (void)AtomicCommitProtocol(storage_).give_up(ready.id, why, collective_.rank());
  return std::unexpected(why);
}

bool CheckpointCoordinator::is_aside(const Ready& ready) const {
  return std::ranges::find(ready.aside, collective_.rank()) != ready.aside.end();
}

Status CheckpointCoordinator::take_from_aside(const Ready& ready, const ShardData& mine,
                                              const SaveOptions& options,
                                              std::vector<std::vector<TensorInfo>>& by_rank) {
  if (ready.aside.empty()) return {};
  const Status put = with_memory("save", [&]() -> Status {
    if (!is_aside(ready)) return {};
    return put_slices(storage_, slices_path(ready.id, collective_.rank()), slices_of(mine));
  });
  if (auto all = collective_.vote(call(ready.id.prefix, "slices put", options), put); !all) return all;
  const Status got = with_memory("save", [&]() -> Status {
    for (const Rank rank : ready.aside) {
      auto slices = get_slices(storage_, slices_path(ready.id, rank));
      if (!slices) return std::unexpected(slices.error());
      by_rank[rank] = *std::move(slices);
    }
    return {};
  });
  return collective_.vote(call(ready.id.prefix, "slices read", options), got);
}

Result<RankReport> CheckpointCoordinator::write(const Ready& ready, const ShardData& mine,
                                                const SaveOptions& options, SaveResult& result) {
  std::vector<TensorSource> slices;
  slices.reserve(ready.to_write.size());
  for (const std::size_t index : ready.to_write) slices.push_back(mine.tensors[index]);
  RankReport report{.shards = {}, .objects = mine.objects};
  if (!ready.base.prefix.empty()) {
    // Without a base that can be read, everything is written.
    if (const auto base = read_metadata(storage_, ready.base))
      report.shards = take_unchanged(storage_, *base, slices, options.sha256);
  }
  for (const ShardMetadata& shard : report.shards)
    for (const TensorMetadata& tensor : shard.tensors) result.bytes_reused += tensor.bytes;

  if (!slices.empty()) {
    std::uint64_t all_bytes = 0;
    for (const TensorSource& slice : slices) all_bytes += slice.data.size();
    constexpr std::uint64_t kTellEvery = 256 << 20;
    std::uint64_t told = 0;
    const auto tell = [&](std::uint64_t bytes) {
      if (bytes < told) return;
      collective_.tell_saving(
          fmt::format("write of {}: {} of {} MiB", to_text(ready.id), bytes >> 20, all_bytes >> 20));
      told = bytes + kTellEvery;
    };
    auto shard = write_shard(storage_, shard_path(ready.id, collective_.rank()), slices,
                             {.sha256 = options.sha256, .stop = options.stop, .progress = tell});
    if (!shard) return std::unexpected(shard.error());
    result.bytes_written = shard->bytes;
    report.shards.push_back(*std::move(shard));
  }
  for (ShardMetadata& shard : report.shards) shard.rank = collective_.rank();
  return report;
}

Result<Status> CheckpointCoordinator::finish(const Ready& ready, const Result<RankReport>& mine,
                                             const SaveOptions& options, SaveResult& result) {
  Result<std::string> report = std::unexpected(mine ? Error{} : mine.error());
  if (mine) report = with_memory("save", [&] { return to_bring(collective_, storage_, *mine, ready.id); });
  Contribution contribution;
  if (report) contribution = bytes_of(*report);
  if (!report) contribution = std::unexpected(report.error());
  auto reports = collective_.gather(call(ready.id.prefix, "written", options), contribution);
  if (!reports) return std::unexpected(reports.error());
  // Who has written has read it.
  if (is_aside(ready)) (void)storage_.remove(slices_path(ready.id, collective_.rank()));

  Result<Bytes> outcome = Bytes();
  if (collective_.rank() == 0) {
    auto decided = with_memory("save", [&] { return commit(ready, *reports, options, result); });
    if (!decided) decided = with_memory("save", [&] { return give_up(ready.id, decided.error(), result); });
    if (decided)
      result = *std::move(decided);
    else
      outcome = with_memory("save", [&]() -> Result<Bytes> { return encoded(decided.error()); });
  }
  auto told = collective_.broadcast(call(ready.id.prefix, "committed", options), brought(outcome));
  if (!told) return std::unexpected(told.error());
  return decoded(*told, collective_.world_size());
}

Result<SaveResult> CheckpointCoordinator::commit(const Ready& ready, const std::vector<Bytes>& reports,
                                                 const SaveOptions& options, const SaveResult& result) {
  const auto metadata = joined(storage_,
                               {.id = ready.id,
                                .generation = collective_.generation(),
                                .created_ms = wall_clock_ms(),
                                .world_size = collective_.world_size(),
                                .sharding = options.sharding,
                                .training = options.training,
                                .custom = options.custom},
                               reports);
  if (!metadata) return std::unexpected(metadata.error());
  Status valid = CheckpointValidator::validate_or_fail(*metadata);
  if (valid) valid = can_be_read_back(*metadata);
  if (valid) valid = check_written(storage_, *metadata);
  if (!valid) return std::unexpected(valid.error());
  const auto verdict = AtomicCommitProtocol(storage_).commit(*metadata);
  if (!verdict) return std::unexpected(verdict.error());
  if (*verdict == Verdict::abort)
    return failure(Errc::closed, fmt::format("{} was given up by somebody else", to_text(ready.id)));
  return with_manifest(ready.id, result);
}

// The decision is the truth, whatever this rank heard or did not hear.
Result<SaveResult> CheckpointCoordinator::give_up(const CheckpointId& id, const Error& why,
                                                  SaveResult result) {
  if (auto ended = AtomicCommitProtocol(storage_).give_up(id, why, collective_.rank()); !ended)
    return std::unexpected(ended.error());
  return with_manifest(id, std::move(result));
}

// What the storage holds, not what was meant to be written.
Result<SaveResult> CheckpointCoordinator::with_manifest(const CheckpointId& id, SaveResult result) {
  if (collective_.rank() != 0) return result;
  auto metadata = read_metadata(storage_, id);
  if (!metadata) return std::unexpected(metadata.error());
  result.metadata = *std::move(metadata);
  return result;
}

}  // namespace baton::checkpoint
