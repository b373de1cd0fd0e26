#include "checkpoint/checkpoint_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <set>

#include "checkpoint/checkpoint_search.h"
#include "checkpoint/checkpoint_validator.h"
#include "checkpoint/save_exchange.h"
#include "checkpoint/with_memory.h"

namespace baton::checkpoint {
namespace {

// Errors that an older checkpoint may not have.
bool is_about_this_one(const Error& error) {
  return error.code == Errc::corrupt || error.code == Errc::io_failed || error.code == Errc::not_found ||
         error.code == Errc::unsupported_version;
}

// For whoever did not ask for another one.
Error advised(Error error, bool is_any_welcome) {
  if (error.code != Errc::corrupt && error.code != Errc::unsupported_version) return error;
  error.message += is_any_welcome ? "; with fall_back the newest one that is whole is loaded"
                                  : "; load another one, or the latest with fall_back";
  return error;
}

Status strictly(const LoadReport& report) {
  std::string said;
  const auto add = [&](std::string_view what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    const std::size_t shown = std::min<std::size_t>(names.size(), 5);
    said += fmt::format("{}{}: {}{}", said.empty() ? "" : "; ", what,
                        fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                        names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "");
  };
  add("missing", report.missing);
  add("not wanted", report.unexpected);
  add("another dtype or shape", report.mismatched);
  if (said.empty()) return {};
  return failure(Errc::conflict, said + "; change what it is loaded into, or do without strict");
}

// A byte for each tensor there is: whether this rank wants it.
Bytes wanted_among(const std::vector<std::string_view>& names, const std::vector<std::string>& unexpected) {
  const std::set<std::string_view> unwanted(unexpected.begin(), unexpected.end());
  Bytes wants;
  for (const std::string_view name : names) wants.push_back(std::byte{!unwanted.contains(name)});
  return wants;
}

Bytes wanted_by_any(const std::vector<Bytes>& by_rank) {
  Bytes any;
  for (const Bytes& wants : by_rank) {
    any.resize(std::max(any.size(), wants.size()));
    std::ranges::transform(wants, any, any.begin(), std::bit_or());
  }
  return any;
}

// Ranks may want different tensors: one is unexpected if nobody wants it.
void forget_wanted(const Bytes& wants, const CheckpointMetadata& metadata,
                   std::vector<std::string>& unexpected) {
  if (unexpected.empty()) return;
  const auto names = LoadPlanner(metadata).names();
  std::set<std::string_view> wanted;
  for (std::size_t i = 0; i < std::min(names.size(), wants.size()); ++i)
    if (wants[i] != std::byte{0}) wanted.insert(names[i]);
  std::erase_if(unexpected, [&](const std::string& name) { return wanted.contains(name); });
}

// What a checkpoint that was passed over left in memory may only be overwritten: it must not pass for what
// was there before the load.
Status check_untouched(const std::set<const std::byte*>& touched, const std::vector<TensorTarget>& left) {
  for (const TensorTarget& target : left) {
    if (!touched.contains(target.data.data())) continue;
    return failure(Errc::corrupt,
                   fmt::format("it has nothing for tensor \"{}\", which holds bytes of a damaged one by now; "
                               "load it by its name, into other memory",
                               target.info.name));
  }
  return {};
}

// A whole shard in memory of its own, as it lies in the file.
Result<ShardData> read_whole(Storage& storage, const ShardMetadata& shard, const ReadOptions& options,
                             std::uint64_t& bytes_read) {
  ShardData loaded;
  std::uint64_t bytes = 0;
  for (const TensorMetadata& tensor : shard.tensors) bytes += tensor.bytes;
  try {
    loaded.data = allocate_aligned(bytes);
  } catch (const std::bad_alloc&) {
    return failure(
        Errc::exhausted,
        fmt::format("there is no memory for the {} bytes of {}; load it with more ranks, or just the "
                    "slices that are needed",
                    bytes, shard.path));
  }
  std::vector<Copy> copies;
  std::uint64_t at = 0;
  for (const TensorMetadata& tensor : shard.tensors) {
    copies.push_back({tensor.begin, tensor.bytes, loaded.data.get() + at});
    loaded.tensors.push_back({tensor.info, ByteView(loaded.data.get() + at, tensor.bytes)});
    at += tensor.bytes;
  }
  auto read = read_shard(storage, shard, copies, options);
  if (!read) return std::unexpected(read.error());
  bytes_read += *read;
  return loaded;
}

}  // namespace

Result<LoadResult> CheckpointLoader::coordinate_load(const std::string& prefix, Rank target_world_size,
                                                     const LoadOptions& options) {
  const ReadOptions reading{.verify = options.verify, .stop = options.stop};
  const auto fits = [&](LoadResult&) -> Result<Bytes> {
    if (target_world_size == collective_.world_size()) return Bytes();
    return failure(Errc::invalid_request, fmt::format("{} ranks load, and the target is {}",
                                                      collective_.world_size(), target_world_size));
  };
  const auto read = [&](LoadResult& result) -> Status {
    const auto assignments = compute_shard_assignments(result.metadata.shards.size(), target_world_size);
    for (const std::size_t index : assignments[collective_.rank()]) {
      auto shard = read_whole(storage_, result.metadata.shards[index], reading, result.report.bytes_read);
      if (!shard) return std::unexpected(shard.error());
      for (const TensorSource& tensor : shard->tensors) {
        result.report.loaded.push_back(tensor.info.name);
        result.report.bytes_needed += tensor.data.size();
      }
      result.shards.push_back(*std::move(shard));
    }
    return {};
  };
  return load_together(prefix, {fits, read}, options);
}

Result<LoadResult> CheckpointLoader::coordinate_load(const std::string& prefix,
                                                     std::span<const TensorTarget> wanted,
                                                     const LoadOptions& options) {
  return coordinate_load(
      prefix, [&](const CheckpointMetadata&) { return std::vector(wanted.begin(), wanted.end()); }, options);
}

Result<LoadResult> CheckpointLoader::coordinate_load(const std::string& prefix, const Wishes& wishes,
                                                     const LoadOptions& options) {
  const ReadOptions reading{.verify = options.verify, .stop = options.stop};
  LoadPlan plan;
  std::set<const std::byte*> touched;
  const auto fits = [&](LoadResult& result) -> Result<Bytes> {
    const auto wanted = wishes(result.metadata);
    if (!wanted) return std::unexpected(wanted.error());
    for (const TensorTarget& target : *wanted) {
      if (auto good = check(target.info); !good) return std::unexpected(good.error());
      if (target.data.size() != slice_bytes(target.info))
        return failure(Errc::invalid_request,
                       fmt::format("tensor \"{}\" comes with room for {} bytes, and its slice has {}",
                                   target.info.name, target.data.size(), slice_bytes(target.info)));
    }
    const LoadPlanner planner(result.metadata);
    plan = planner.plan(*wanted);
    if (auto clean = check_untouched(touched, plan.left); !clean) return std::unexpected(clean.error());
    result.report = plan.report;
    return wanted_among(planner.names(), result.report.unexpected);
  };
  const auto read = [&](LoadResult& result) -> Status {
    touched.insert(plan.filled.begin(), plan.filled.end());
    auto bytes = read_planned(storage_, result.metadata, plan, reading);
    if (!bytes) return std::unexpected(bytes.error());
    result.report.bytes_read += *bytes;
    return {};
  };
  return load_together(prefix, {fits, read}, options);
}

// On rank 0: where the search has got to, the newest first. On all ranks: what was passed over.
struct CheckpointLoader::Search {
  std::optional<CheckpointSearch> older;
  std::vector<std::string> passed_over;

  Result<CheckpointMetadata> next_good(const LoadOptions& options);
  // The same, as all ranks are told of it.
  Result<Bytes> next_told(const LoadOptions& options, Rank world_size);
};

Result<CheckpointMetadata> CheckpointLoader::Search::next_good(const LoadOptions& options) {
  while (auto attempt = older->next()) {
    Status good;
    if (attempt->trouble) good = std::unexpected(*attempt->trouble);
    if (attempt->metadata) good = CheckpointValidator::validate_or_fail(*attempt->metadata);
    if (good) return *std::move(attempt->metadata);
    if (!options.fall_back || !is_about_this_one(good.error())) return std::unexpected(good.error());
    passed_over.push_back(good.error().message);
  }
  // Whoever begins anew where there is none would go on with what a damaged one left in memory.
  if (!passed_over.empty())
    return failure(Errc::corrupt, fmt::format("no checkpoint is whole: {}", fmt::join(passed_over, "; ")));
  return std::unexpected(older->nothing_found());
}

Result<Bytes> CheckpointLoader::Search::next_told(const LoadOptions& options, Rank world_size) {
  const auto good = next_good(options);
  if (!good) return std::unexpected(good.error());
  Bytes bytes;
  ByteWriter to(bytes);
  to.text(good->id.prefix);
  to.text(good->id.attempt);
  to.varint(passed_over.size());
  for (const std::string& why : passed_over) to.text(why);
  // One that is too large to be handed round is read by each rank itself.
  const std::string manifest = MetadataSerializer::serialize(*good);
  if (manifest.size() <= brought_max(1, world_size)) to.raw(bytes_of(manifest));
  return bytes;
}

// What is read wrongly here is for the next step, where all ranks hear of it.
Result<CheckpointLoader::Choice> CheckpointLoader::choose(const Call& call, Search& search,
                                                          const LoadOptions& options) {
  Result<Bytes> choice = Bytes();
  if (collective_.rank() == 0)
    choice = with_memory("load", [&] { return search.next_told(options, collective_.world_size()); });
  auto told = collective_.broadcast(call, brought(choice));
  if (!told) return std::unexpected(told.error());
  ByteReader from(*told);
  const CheckpointId id{std::string(from.text()), std::string(from.text())};
  search.passed_over.clear();
  for (std::uint64_t count = from.varint(); count > 0 && from.ok(); --count)
    search.passed_over.emplace_back(from.text());
  const ByteView manifest = from.rest();
  return Choice{id, with_memory("load", [&] {
                  return manifest.empty() ? read_metadata(storage_, id)
                                          : MetadataSerializer::parse(text_of(manifest), manifest_path(id));
                })};
}

Status CheckpointLoader::agree(const Call& call, const Part& part, LoadResult& result, const Status& chosen,
                               bool strict) {
  const Result<Bytes> wants = with_memory(
      "load", [&] { return chosen ? part.fits(result) : Result<Bytes>(std::unexpected(chosen.error())); });
  const auto all = collective_.gather({call.name + " wanted", call.deadline, call.stop}, brought(wants));
  if (!all) return std::unexpected(all.error());
  const Result<Bytes> any = with_memory("load", [&] { return Result<Bytes>(wanted_by_any(*all)); });
  const auto told =
      collective_.broadcast({call.name + " wanted by any", call.deadline, call.stop}, brought(any));
  if (!told) return std::unexpected(told.error());
  const Status fits = with_memory("load", [&] {
    forget_wanted(*told, result.metadata, result.report.unexpected);
    return strict ? strictly(result.report) : Status{};
  });
  return collective_.vote(call, fits);
}

Result<LoadResult> CheckpointLoader::load_together(const std::string& prefix, const Part& part,
                                                   const LoadOptions& options) {
  const auto call = [&](std::string_view step) {
    return Call{.name = fmt::format("load {} {}", prefix.substr(0, kPrefixBytesMax), step),
                .deadline = options.deadline,
                .stop = options.stop};
  };
  const bool is_any_welcome = prefix.empty() || prefix == "latest";
  Search search;
  const Status listed = with_memory("load", [&]() -> Status {
    if (collective_.rank() != 0) return {};
    auto begun = CheckpointSearch::begin(storage_, prefix.empty() ? "latest" : prefix);
    if (!begun) return std::unexpected(begun.error());
    search.older = *std::move(begun);
    return {};
  });
  if (auto begun = collective_.vote(call("begin"), listed); !begun) return std::unexpected(begun.error());
  for (;;) {
    auto choice = choose(call("choice"), search, options);
    if (!choice && options.fall_back) return std::unexpected(choice.error());
    if (!choice) return std::unexpected(advised(choice.error(), is_any_welcome));
    LoadResult result;
    Status chosen;
    if (choice->metadata) result.metadata = *std::move(choice->metadata);
    if (!choice->metadata) chosen = std::unexpected(choice->metadata.error());
    Status loaded = agree(call("compatible"), part, result, chosen, options.strict);
    if (loaded)
      loaded = collective_.vote(call("loaded"), with_memory("load", [&] { return part.read(result); }));
    if (loaded) {
      result.report.passed_over = std::move(search.passed_over);
      return result;
    }
    // It was there a moment ago: whoever does not see it must not begin anew.
    if (loaded.error().code == Errc::not_found) loaded = failure(Errc::corrupt, loaded.error().message);
    if (!options.fall_back) return std::unexpected(advised(loaded.error(), is_any_welcome));
    if (!is_about_this_one(loaded.error())) return std::unexpected(loaded.error());
    search.passed_over.push_back(fmt::format("{}: {}", to_text(choice->id), loaded.error().message));
  }
}

}  // namespace baton::checkpoint
