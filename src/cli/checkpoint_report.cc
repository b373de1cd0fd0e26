#include "cli/checkpoint_report.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/quantities.h"
#include "cli/table.h"
#include "wire/text.h"

namespace baton::cli {
namespace {

using namespace checkpoint;

std::string json_numbers(const Shape& numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

// Every digit of it, and as the manifest has it what JSON has no number for.
std::string json_rate(double rate) {
  return std::isfinite(rate) ? fmt::format("{}", rate) : fmt::format("\"{}\"", rate);
}

JsonObject json_of(const Attempt& attempt) {
  JsonObject object;
  object.text("checkpoint", to_text(attempt.id))
      .text("state", word(attempt.state))
      .boolean("pinned", attempt.is_pinned);
  if (attempt.metadata) {
    object.number("step", attempt.metadata->training.step)
        .number("world_size", attempt.metadata->world_size)
        .number("shards", attempt.metadata->shards.size())
        .number("bytes", attempt.metadata->tensor_bytes())
        .number("created_ms", static_cast<std::uint64_t>(attempt.metadata->created_ms));
  }
  if (attempt.trouble) object.text("trouble", attempt.trouble->message);
  return object;
}

std::string json_of(const CheckpointMetadata& metadata) {
  std::string tensors;
  for (const ShardMetadata& shard : metadata.shards) {
    for (const TensorMetadata& tensor : shard.tensors) {
      tensors += tensors.empty() ? "" : ",";
      JsonObject slice;
      slice.text("name", tensor.info.name)
          .text("dtype", word(tensor.info.dtype))
          .literal("shape", json_numbers(tensor.info.global_shape))
          .literal("slice_offset", json_numbers(tensor.info.slice.offset))
          .literal("slice_shape", json_numbers(tensor.info.slice.shape))
          .number("bytes", tensor.bytes)
          .text("file", shard.path)
          .text("xxh3", to_hex(tensor.fingerprint));
      if (!tensor.sha256.empty()) slice.text("sha256", tensor.sha256);
      tensors += slice.whole();
    }
  }
  JsonObject objects;
  for (const auto& [name, text] : metadata.objects) objects.literal(name, text);
  JsonObject custom;
  for (const auto& [name, text] : metadata.custom) custom.text(name, text);
  return JsonObject()
      .text("checkpoint", to_text(metadata.id))
      .number("step", metadata.training.step)
      .number("epoch", metadata.training.epoch)
      .literal("learning_rate", json_rate(metadata.training.learning_rate))
      .text("optimizer", metadata.training.optimizer)
      .number("world_size", metadata.world_size)
      .number("generation", metadata.generation)
      .text("strategy", metadata.sharding.strategy)
      .object("objects", objects)
      .object("custom", custom)
      .literal("tensors", "[" + tensors + "]")
      .whole();
}

void print_names(std::string_view what, const std::vector<std::string>& names) {
  for (const std::string& name : names) fmt::print("{} {}\n", what, printable(name, 200));
}

}  // namespace

std::string json_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) {
    if (!list.empty()) list += ',';
    wire::put_json_string(list, text);
  }
  return "[" + list + "]";
}

void print_attempts(const std::vector<Attempt>& attempts, Format format) {
  if (format == Format::json) {
    for (const Attempt& attempt : attempts) fmt::print("{}\n", json_of(attempt).whole());
    return;
  }
  Table table({{"step", Align::right},
               {"checkpoint"},
               {"state"},
               {"ranks", Align::right},
               {"size", Align::right},
               {"age", Align::right},
               {""}});
  for (const Attempt& attempt : attempts) {
    const Duration age =
        wall_clock() - Instant{attempt.metadata ? attempt.metadata->created_ms : attempt.modified_ms};
    std::string remark = attempt.is_pinned ? "pinned" : "";
    if (attempt.trouble) remark += (remark.empty() ? "" : "; ") + printable(attempt.trouble->message, 100);
    const bool is_whole = attempt.metadata.has_value();
    table.row({is_whole ? fmt::format("{}", attempt.metadata->training.step) : "-", to_text(attempt.id),
               std::string(word(attempt.state)),
               is_whole ? fmt::format("{}", attempt.metadata->world_size) : "-",
               is_whole ? size_text(attempt.metadata->tensor_bytes()) : "-", rough_text(age), remark});
  }
  table.print();
}

void print_metadata(const CheckpointMetadata& metadata, Format format) {
  if (format == Format::json) {
    fmt::print("{}\n", json_of(metadata));
    return;
  }
  fmt::print("{}: step {}, {} in {} by {}\n", to_text(metadata.id), metadata.training.step,
             size_text(metadata.tensor_bytes()), counted(metadata.shards.size(), "file"),
             counted(metadata.world_size, "rank"));
  for (const auto& [name, text] : metadata.objects)
    fmt::print("{} = {}\n", printable(name), printable(text, 200));
  for (const auto& [name, text] : metadata.custom)
    fmt::print("{}: {}\n", printable(name), printable(text, 200));
  Table table({{"tensor"}, {"dtype"}, {"shape"}, {"slice"}, {"size", Align::right}, {"file"}});
  for (const ShardMetadata& shard : metadata.shards) {
    for (const TensorMetadata& tensor : shard.tensors) {
      const bool is_whole = tensor.info.slice == whole(tensor.info.global_shape);
      table.row({printable(tensor.info.name), std::string(word(tensor.info.dtype)),
                 to_text(tensor.info.global_shape), is_whole ? "whole" : to_text(tensor.info.slice),
                 size_text(tensor.bytes), shard.path});
    }
  }
  table.print();
}

void print_difference(const Difference& difference, Format format) {
  if (format == Format::json) {
    fmt::print("{}\n", JsonObject()
                           .literal("only_in_first", json_list(difference.only_in_first))
                           .literal("only_in_second", json_list(difference.only_in_second))
                           .literal("of_another_form", json_list(difference.of_another_form))
                           .literal("changed", json_list(difference.changed))
                           .number("same", difference.same)
                           .number("bytes_read", difference.bytes_read)
                           .whole());
    return;
  }
  print_names("-", difference.only_in_first);
  print_names("+", difference.only_in_second);
  print_names("!", difference.of_another_form);
  print_names("~", difference.changed);
  fmt::print(
      "{} the same, {} changed, {} of another dtype or shape, {} only in the first, {} only in the second\n",
      difference.same, difference.changed.size(), difference.of_another_form.size(),
      difference.only_in_first.size(), difference.only_in_second.size());
}

void print_removed(const Removed& removed, Really really, Format format) {
  std::vector<std::string> names;
  for (const CheckpointId& id : removed.checkpoints) names.push_back(to_text(id));
  const bool is_done = really == Really::yes;
  if (format == Format::json) {
    fmt::print("{}\n", JsonObject()
                           .boolean("removed", is_done)
                           .literal("checkpoints", json_list(names))
                           .literal("files", json_list(removed.files))
                           .number("bytes", removed.bytes)
                           .number("young", removed.young)
                           .number("remembered", removed.remembered)
                           .whole());
    return;
  }
  fmt::print("{}{} in {}, {}\n", is_done ? "removed " : "would remove ", counted(names.size(), "attempt"),
             counted(removed.files.size(), "file"), size_text(removed.bytes));
}

}  // namespace baton::cli
