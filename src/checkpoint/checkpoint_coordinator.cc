#include "checkpoint/checkpoint_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>

#include "checkpoint/atomic_commit_protocol.h"
#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_validator.h"
#include "checkpoint/reuse.h"
#include "checkpoint/save_plan.h"
#include "checkpoint/shard_file.h"

namespace baton::checkpoint {
namespace {

std::int64_t wall_clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// What a rank brings to the first step. Rank 0 names the attempt, and what it may reuse.
struct Announcement {
  std::string attempt;
  CheckpointId base;
  std::vector<TensorInfo> slices;
};

Bytes encode(const Announcement& announcement) {
  Bytes bytes;
  ByteWriter to(bytes);
  to.text(announcement.attempt);
  to.text(announcement.base.prefix);
  to.text(announcement.base.attempt);
  to.raw(encode(announcement.slices));
  return bytes;
}

Result<Announcement> decode_announcement(ByteView bytes) {
  ByteReader from(bytes);
  Announcement announcement{.attempt = std::string(from.text()),
                            .base = {std::string(from.text()), std::string(from.text())},
                            .slices = {}};
  auto slices = decode_slices(from.rest());
  if (!slices) return std::unexpected(slices.error());
  announcement.slices = *std::move(slices);
  return announcement;
}

// An error is brought in place of bytes, and so reaches all ranks.
Contribution brought(const Result<Bytes>& mine) {
  if (!mine) return std::unexpected(mine.error());
  return ByteView(*mine);
}

// Whoever prunes finds this, and leaves the files of the base alone while the attempt is undecided.
bool hold_base(Storage& storage, const CheckpointId& attempt, const CheckpointId& base) {
  const auto put = storage.put_if_absent(base_path(attempt), bytes_of(to_text(base)));
  return put && *put && read_metadata(storage, base);  // which may have been pruned just before
}

Result<Announcement> announce(Rank rank, Storage& storage, const std::string& prefix,
                              const Result<ShardData>& mine, bool incremental) {
  if (!mine) return std::unexpected(mine.error());
  Announcement announcement;
  for (const TensorSource& tensor : mine->tensors) announcement.slices.push_back(tensor.info);
  if (rank != 0) return announcement;
  auto id = new_attempt(storage, prefix);
  if (!id) return std::unexpected(id.error());
  announcement.attempt = id->attempt;
  if (incremental) {
    // Without one that can be read, everything is written.
    if (auto newest = find_checkpoint(storage, "latest"); newest && hold_base(storage, *id, newest->id))
      announcement.base = newest->id;
  }
  return announcement;
}

Status check_data(const ShardData& mine) {
  for (const TensorSource& tensor : mine.tensors) {
    if (auto fits = check(tensor.info); !fits) return fits;
    if (tensor.data.size() != slice_bytes(tensor.info))
      return failure(
          Errc::invalid_request,
          fmt::format("tensor \"{}\" comes with {} bytes, and its slice {} has {}", tensor.info.name,
                      tensor.data.size(), to_text(tensor.info.slice), slice_bytes(tensor.info)));
  }
  for (const auto& [name, text] : mine.objects) {
    boost::json::error_code wrong;
    (void)boost::json::parse(text, wrong);
    if (wrong)
      return failure(Errc::invalid_request,
                     fmt::format("object \"{}\" is not JSON: {}", name, wrong.message()));
  }
  return {};
}

// A report that is too large to be brought is put beside the shard, and its path is brought.
constexpr std::size_t kBroughtMax = 1 << 20;
constexpr std::string_view kReportEnd = ".report";

Result<std::string> to_bring(Storage& storage, const Result<RankReport>& report, const std::string& path) {
  if (!report) return std::unexpected(report.error());
  std::string text = MetadataSerializer::serialize(*report);
  if (text.size() <= kBroughtMax) return text;
  const auto put = storage.put_if_absent(path, bytes_of(text));
  if (!put) return std::unexpected(put.error());
  return path;
}

Result<RankReport> brought_report(Storage& storage, std::string_view brought) {
  if (!brought.ends_with(kReportEnd)) return MetadataSerializer::parse_report(brought);
  const std::string path(brought);
  const auto text = storage.get(path);
  if (!text) return std::unexpected(text.error());
  (void)storage.remove(path);  // what is left of it goes with the attempt
  return MetadataSerializer::parse_report(text_of(*text));
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

}  // namespace

// What all ranks know after the first step.
struct CheckpointCoordinator::Ready {
  CheckpointId id;
  CheckpointId base;
  std::vector<std::size_t> to_write;  // of this rank's slices
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
  Result<ShardData> mine = local_save();
  if (mine) {
    Status fits = check_prefix(prefix);
    if (fits) fits = check_data(*mine);
    if (!fits) mine = std::unexpected(fits.error());
  }
  auto ready = get_ready(prefix, mine, options);
  if (!ready) return std::unexpected(ready.error());

  SaveResult result{.id = ready->id};
  const auto report = write(*ready, *mine, options, result);
  const auto verdict = finish(*ready, report, options, result);
  if (!verdict) return give_up(ready->id, verdict.error(), std::move(result));
  if (*verdict == Verdict::abort)
    return give_up(ready->id,
                   {Errc::closed, fmt::format("{} was given up by somebody else", to_text(ready->id))},
                   std::move(result));
  return result;
}

Result<CheckpointCoordinator::Ready> CheckpointCoordinator::get_ready(const std::string& prefix,
                                                                      const Result<ShardData>& mine,
                                                                      const SaveOptions& options) {
  Result<Bytes> bytes = Bytes();
  auto announcement = announce(collective_.rank(), storage_, prefix, mine, options.incremental);
  if (announcement) bytes = encode(*announcement);
  if (!announcement) bytes = std::unexpected(announcement.error());
  auto all = collective_.all_gather(call(prefix, "ready", options), brought(bytes));
  if (!all) return std::unexpected(all.error());

  Ready ready;
  std::vector<std::vector<TensorInfo>> by_rank;
  for (const Bytes& of_rank : *all) {
    auto heard = decode_announcement(of_rank);
    if (!heard) return std::unexpected(heard.error());
    if (by_rank.empty()) {
      ready.id = {prefix, heard->attempt};
      ready.base = heard->base;
    }
    by_rank.push_back(std::move(heard->slices));
  }
  // Every rank comes to the same plan, or to the same error.
  auto plan = assign_writers(by_rank);
  if (!plan) return std::unexpected(plan.error());
  ready.to_write = std::move((*plan)[collective_.rank()]);
  return ready;
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
      collective_.tell_doing(
          fmt::format("write of {}: {} of {} MiB", to_text(ready.id), bytes >> 20, all_bytes >> 20));
      told = bytes + kTellEvery;
    };
    const std::string path = fmt::format("{}/r{:05}.safetensors", directory_of(ready.id), collective_.rank());
    auto shard = write_shard(storage_, path, slices,
                             {.sha256 = options.sha256, .stop = options.stop, .progress = tell});
    collective_.tell_doing("");
    if (!shard) return std::unexpected(shard.error());
    result.bytes_written = shard->bytes;
    report.shards.push_back(*std::move(shard));
  }
  for (ShardMetadata& shard : report.shards) shard.rank = collective_.rank();
  return report;
}

Result<Verdict> CheckpointCoordinator::finish(const Ready& ready, const Result<RankReport>& mine,
                                              const SaveOptions& options, SaveResult& result) {
  const std::string path = fmt::format("{}/r{:05}{}", directory_of(ready.id), collective_.rank(), kReportEnd);
  const auto report = to_bring(storage_, mine, path);
  Contribution contribution;
  if (report) contribution = bytes_of(*report);
  if (!report) contribution = std::unexpected(report.error());
  auto reports = collective_.gather(call(ready.id.prefix, "written", options), contribution);
  if (!reports) return std::unexpected(reports.error());

  Result<Verdict> verdict = Verdict::commit;
  if (collective_.rank() == 0) {
    auto metadata = joined(storage_,
                           {.id = ready.id,
                            .generation = collective_.generation(),
                            .created_ms = wall_clock_ms(),
                            .world_size = collective_.world_size(),
                            .sharding = options.sharding,
                            .training = options.training,
                            .custom = options.custom},
                           *reports);
    Status valid;
    if (!metadata) valid = std::unexpected(metadata.error());
    if (metadata) valid = CheckpointValidator::validate_or_fail(*metadata);
    if (valid) valid = can_be_read_back(*metadata);
    verdict = valid ? AtomicCommitProtocol(storage_).commit(*metadata)
                    : Result<Verdict>(std::unexpected(valid.error()));
    if (verdict && !ready.base.prefix.empty()) (void)storage_.remove(base_path(ready.id));
    if (valid) result.metadata = *std::move(metadata);
  }
  Bytes decided{verdict && *verdict == Verdict::abort ? std::byte{1} : std::byte{0}};
  Contribution outcome = decided;
  if (!verdict) outcome = std::unexpected(verdict.error());
  auto told = collective_.broadcast(call(ready.id.prefix, "committed", options), outcome);
  if (!told) return std::unexpected(told.error());
  return told->at(0) == std::byte{1} ? Verdict::abort : Verdict::commit;
}

// The decision is the truth, whatever this rank heard or did not hear.
Result<SaveResult> CheckpointCoordinator::give_up(const CheckpointId& id, const Error& why,
                                                  SaveResult result) {
  auto verdict = AtomicCommitProtocol(storage_).abort(id, why.message);
  if (!verdict)
    return failure(why.code, fmt::format("{}; and that {} is given up could not be written down: {}",
                                         why.message, to_text(id), verdict.error().message));
  if (*verdict == Verdict::commit) {
    if (collective_.rank() == 0) {
      auto metadata = read_metadata(storage_, id);
      if (!metadata) return std::unexpected(metadata.error());
      result.metadata = *std::move(metadata);
    }
    return result;
  }
  (void)storage_.remove_directory(
      directory_of(id));  // what cannot be removed now is garbage, and found as such
  return std::unexpected(why);
}

}  // namespace baton::checkpoint
