#include "checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <numeric>
#include <set>

namespace baton::checkpoint {
namespace {

namespace json = boost::json;

json::array array_of(const Shape& shape) { return json::array(shape.begin(), shape.end()); }

Shape shape_of(const json::value& value) {
  Shape shape;
  for (const json::value& extent : value.as_array()) shape.push_back(extent.to_number<std::uint64_t>());
  return shape;
}

std::unexpected<Error> malformed(const std::string& what) {
  return failure(Errc::corrupt, "its safetensors header makes no sense: " + what);
}

// Another slice of a tensor in the same file gets a name that no tensor has. There may be many: each looks on
// from where the one before it found one.
std::string entry_for(const std::string& name, std::uint64_t& number, std::set<std::string>& taken) {
  for (;;) {
    std::string entry = fmt::format("{}@{}", name, number++);
    if (taken.insert(entry).second) return entry;
  }
}

std::string header_text(const std::vector<TensorMetadata>& tensors, std::uint64_t data_begin) {
  json::object slices;
  json::object header;
  for (const TensorMetadata& tensor : tensors) {
    slices[tensor.entry] = json::object{{"name", tensor.info.name},
                                        {"shape", array_of(tensor.info.global_shape)},
                                        {"offset", array_of(tensor.info.slice.offset)}};
  }
  header["__metadata__"] = json::object{{"baton.format", "1"}, {"baton.slices", json::serialize(slices)}};
  for (const TensorMetadata& tensor : tensors) {
    const std::uint64_t begin = tensor.begin - data_begin;
    header[tensor.entry] = json::object{{"dtype", word(tensor.info.dtype)},
                                        {"shape", array_of(tensor.info.slice.shape)},
                                        {"data_offsets", json::array{begin, begin + tensor.bytes}}};
  }
  return json::serialize(header);
}

// Which whole the slices are of, if the file says so.
void place_slices(const json::object& header, std::vector<TensorMetadata>& tensors) {
  const json::value* metadata = header.if_contains("__metadata__");
  if (metadata == nullptr) return;
  const json::value* said = metadata->as_object().if_contains("baton.slices");
  if (said == nullptr) return;
  const json::value parsed = json::parse(std::string_view(said->as_string()));
  for (TensorMetadata& tensor : tensors) {
    const json::object& slice = parsed.as_object().at(tensor.entry).as_object();
    tensor.info.name = std::string_view(slice.at("name").as_string());
    tensor.info.global_shape = shape_of(slice.at("shape"));
    tensor.info.slice.offset = shape_of(slice.at("offset"));
  }
}

TensorMetadata tensor_of(std::string_view entry, const json::object& fields, std::uint64_t data_begin) {
  TensorMetadata tensor;
  const std::string_view dtype = fields.at("dtype").as_string();
  const auto known = dtype_of(dtype);
  if (!known) throw std::invalid_argument(fmt::format("the dtype {} is not known", dtype));
  const Shape shape = shape_of(fields.at("shape"));
  const json::array& offsets = fields.at("data_offsets").as_array();
  const auto begin = offsets.at(0).to_number<std::uint64_t>();
  const auto end = offsets.at(1).to_number<std::uint64_t>();
  if (offsets.size() != 2 || begin > end)
    throw std::invalid_argument("data_offsets are not two numbers in order");
  tensor.info = {std::string(entry), *known, shape, whole(shape)};
  tensor.entry = entry;
  tensor.begin = data_begin + begin;
  tensor.bytes = end - begin;
  return tensor;
}

// Every byte of the data belongs to one tensor.
Status check_layout(std::vector<TensorMetadata>& tensors, std::uint64_t data_begin,
                    std::uint64_t file_bytes) {
  std::ranges::stable_sort(tensors, [](const TensorMetadata& a, const TensorMetadata& b) {
    return std::pair(a.begin, a.bytes) < std::pair(b.begin, b.bytes);
  });
  std::uint64_t at = data_begin;
  for (const TensorMetadata& tensor : tensors) {
    if (auto fits = check(tensor.info); !fits) return malformed(fits.error().message);
    if (tensor.bytes != slice_bytes(tensor.info))
      return malformed(fmt::format("{} has {} bytes, and its shape asks for {}", tensor.entry, tensor.bytes,
                                   slice_bytes(tensor.info)));
    if (tensor.begin != at)
      return malformed(fmt::format("{} does not begin where the one before it ends", tensor.entry));
    at += tensor.bytes;
  }
  if (at != file_bytes)
    return malformed(fmt::format("its tensors end at byte {}, and the file at {}", at, file_bytes));
  return {};
}

}  // namespace

Result<SafetensorsPlan> plan_safetensors(const std::vector<TensorInfo>& slices) {
  SafetensorsPlan plan;
  plan.source.resize(slices.size());
  std::iota(plan.source.begin(), plan.source.end(), std::size_t{0});
  std::ranges::sort(plan.source, [&](std::size_t a, std::size_t b) {
    const std::uint64_t a_width = element_bytes(slices[a].dtype);
    const std::uint64_t b_width = element_bytes(slices[b].dtype);
    return a_width != b_width ? a_width > b_width : slices[a] < slices[b];
  });
  std::set<std::string> taken;
  for (const TensorInfo& slice : slices) taken.insert(slice.name);
  std::map<std::string_view, std::uint64_t> numbers;
  std::uint64_t data_bytes = 0;
  for (const std::size_t index : plan.source) {
    const TensorInfo& slice = slices[index];
    if (auto fits = check(slice); !fits) return std::unexpected(fits.error());
    const auto [number, is_first] = numbers.try_emplace(slice.name, 1);
    TensorMetadata tensor{.info = slice,
                          .entry = is_first ? slice.name : entry_for(slice.name, number->second, taken),
                          .begin = data_bytes,
                          .bytes = slice_bytes(slice)};
    data_bytes += tensor.bytes;
    plan.tensors.push_back(std::move(tensor));
  }

  std::string text = header_text(plan.tensors, 0);
  const std::uint64_t data_begin =
      (8 + text.size() + kSafetensorsAlignment - 1) / kSafetensorsAlignment * kSafetensorsAlignment;
  text.resize(data_begin - 8, ' ');
  if (text.size() > kSafetensorsHeaderBytesMax)
    return failure(Errc::too_large,
                   fmt::format("{} slices need a header of {} bytes, and a safetensors file has {} at most",
                               slices.size(), text.size(), kSafetensorsHeaderBytesMax));
  Bytes length;
  ByteWriter(length).fixed(std::uint64_t{text.size()});
  plan.header = std::string(text_of(length)) + text;
  for (TensorMetadata& tensor : plan.tensors) tensor.begin += data_begin;
  plan.file_bytes = data_begin + data_bytes;
  return plan;
}

Result<std::uint64_t> safetensors_header_bytes(ByteView first_eight, std::uint64_t file_bytes) {
  const auto length = ByteReader(first_eight).fixed<std::uint64_t>();
  if (first_eight.size() < 8 || length > kSafetensorsHeaderBytesMax || length > file_bytes - 8)
    return failure(Errc::corrupt, "it does not begin as a safetensors file does");
  return length;
}

Result<std::vector<TensorMetadata>> parse_safetensors(std::string_view header, std::uint64_t file_bytes) {
  const std::uint64_t data_begin = 8 + header.size();
  std::vector<TensorMetadata> tensors;
  try {
    const json::value value = json::parse(header);
    for (const auto& member : value.as_object()) {
      if (member.key() == "__metadata__") continue;
      tensors.push_back(tensor_of(member.key(), member.value().as_object(), data_begin));
    }
    place_slices(value.as_object(), tensors);
  } catch (const std::exception& misfit) {
    return malformed(misfit.what());
  }
  if (auto fits = check_layout(tensors, data_begin, file_bytes); !fits) return std::unexpected(fits.error());
  return tensors;
}

}  // namespace baton::checkpoint
