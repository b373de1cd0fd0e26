#include "checkpoint/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "checkpoint/tensor_pieces.h"

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

// Piece by piece, up to the first that differs.
Result<bool> have_same_content(TensorPieces& first, TensorPieces& second, const TensorInfo& tensor,
                               const Progress& progress) {
  std::uint64_t done = 0;
  for (const Elements& piece : pieces_of(tensor)) {
    const auto left = first.read(tensor, piece);
    if (!left) return std::unexpected(left.error());
    const auto right = second.read(tensor, piece);
    if (!right) return std::unexpected(right.error());
    if (std::memcmp(left->data(), right->data(), left->size()) != 0) return false;
    progress(done += left->size());
  }
  return true;
}

void compare_values(const CheckpointMetadata& first, const CheckpointMetadata& second,
                    Difference& difference) {
  for (const auto& [name, text] : second.objects)
    if (is_plain_value(name) && !first.objects.contains(name)) difference.only_in_second.push_back(name);
  for (const auto& [name, text] : first.objects) {
    if (!is_plain_value(name)) continue;
    const auto found = second.objects.find(name);
    if (found == second.objects.end()) {
      difference.only_in_first.push_back(name);
    } else if (found->second != text) {
      difference.changed.push_back(name);
    } else {
      ++difference.same;
    }
  }
}

}  // namespace

bool is_plain_value(std::string_view name) { return !name.starts_with("~structure/"); }

Result<Difference> compare(Storage& storage, const CheckpointMetadata& first,
                           const CheckpointMetadata& second, const Progress& progress) {
  Difference difference;
  const Forms forms = forms_of(first);
  const Forms others = forms_of(second);
  TensorPieces first_pieces(storage, first);
  TensorPieces second_pieces(storage, second);
  std::uint64_t done = 0;
  const auto tell = [&](std::uint64_t bytes) {
    if (progress) progress(done + bytes);
  };
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
      const auto same = have_same_content(first_pieces, second_pieces, form.whole_tensor, tell);
      if (!same) return std::unexpected(same.error());
      is_same = *same;
    }
    done += slice_bytes(form.whole_tensor);
    tell(0);
    if (is_same) {
      ++difference.same;
    } else {
      difference.changed.push_back(name);
    }
  }
  compare_values(first, second, difference);
  difference.bytes_read = first_pieces.bytes_read() + second_pieces.bytes_read();
  return difference;
}

}  // namespace baton::checkpoint
