#include "checkpoint/difference.h"

#include <fmt/format.h>

#include <cstring>
#include <map>

#include "checkpoint/aligned_memory.h"
#include "checkpoint/load_plan.h"
#include "checkpoint/shard_file.h"

namespace baton::checkpoint {
namespace {

struct Form {
  TensorInfo whole_tensor;
  std::map<Rectangle, Fingerprint> slices;
};
using Forms = std::map<std::string, Form>;

Forms forms_of(const CheckpointMetadata& metadata) {
  Forms forms;
  for (const ShardMetadata& shard : metadata.shards) {
    for (const TensorMetadata& tensor : shard.tensors) {
      Form& form = forms[tensor.info.name];
      form.whole_tensor = tensor.info;
      form.whole_tensor.slice = whole(tensor.info.global_shape);
      form.slices.emplace(tensor.info.slice, tensor.fingerprint);
    }
  }
  return forms;
}

bool are_cut_alike(const Form& a, const Form& b) {
  return std::ranges::equal(
      a.slices, b.slices, {}, [](const auto& slice) { return slice.first; },
      [](const auto& slice) { return slice.first; });
}

struct Side {
  const CheckpointMetadata& metadata;
  const LoadPlanner planner{metadata};
};

Result<AlignedMemory> content_of(Storage& storage, const Side& side, const TensorInfo& tensor,
                                 std::uint64_t& bytes_read) {
  AlignedMemory memory = allocate_aligned(slice_bytes(tensor));
  const TensorTarget target{tensor, {memory.get(), slice_bytes(tensor)}};
  auto read = read_planned(storage, side.metadata, side.planner.plan({&target, 1}), {});
  if (!read) return std::unexpected(read.error());
  bytes_read += *read;
  return memory;
}

}  // namespace

Result<Difference> compare(Storage& storage, const CheckpointMetadata& first,
                           const CheckpointMetadata& second) {
  Difference difference;
  const Forms forms = forms_of(first);
  const Forms others = forms_of(second);
  const Side first_side{first};
  const Side second_side{second};
  for (const auto& [name, form] : others)
    if (!forms.contains(name)) difference.only_in_second.push_back(name);
  for (const auto& [name, form] : forms) {
    const auto found = others.find(name);
    if (found == others.end()) {
      difference.only_in_first.push_back(name);
      continue;
    }
    const Form& other = found->second;
    if (form.whole_tensor != other.whole_tensor) {
      difference.of_another_form.push_back(fmt::format(
          "{}: {} {} and {} {}", name, word(form.whole_tensor.dtype), to_text(form.whole_tensor.global_shape),
          word(other.whole_tensor.dtype), to_text(other.whole_tensor.global_shape)));
      continue;
    }
    bool is_same = form.slices == other.slices;
    if (!is_same && !are_cut_alike(form, other)) {
      auto left = content_of(storage, first_side, form.whole_tensor, difference.bytes_read);
      if (!left) return std::unexpected(left.error());
      auto right = content_of(storage, second_side, form.whole_tensor, difference.bytes_read);
      if (!right) return std::unexpected(right.error());
      is_same = std::memcmp(left->get(), right->get(), slice_bytes(form.whole_tensor)) == 0;
    }
    if (is_same) {
      ++difference.same;
    } else {
      difference.changed.push_back(name);
    }
  }
  return difference;
}

}  // namespace baton::checkpoint
