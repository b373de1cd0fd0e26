#include "checkpoint/tensor.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/utf8.h"
#include "wire/text.h"

namespace baton::checkpoint {

std::string_view word(Dtype dtype) {
  switch (dtype) {
    case Dtype::boolean: return "BOOL";
    case Dtype::u8: return "U8";
    case Dtype::i8: return "I8";
    case Dtype::f8_e4m3: return "F8_E4M3";
    case Dtype::f8_e5m2: return "F8_E5M2";
    case Dtype::i16: return "I16";
    case Dtype::u16: return "U16";
    case Dtype::f16: return "F16";
    case Dtype::bf16: return "BF16";
    case Dtype::i32: return "I32";
    case Dtype::u32: return "U32";
    case Dtype::f32: return "F32";
    case Dtype::i64: return "I64";
    case Dtype::u64: return "U64";
    case Dtype::f64: return "F64";
  }
  BATON_CHECK(false && "unknown dtype");
}

std::optional<Dtype> dtype_of(std::string_view text) {
  for (int dtype = 0; dtype <= static_cast<int>(kLastDtype); ++dtype) {
    if (word(static_cast<Dtype>(dtype)) == text) return static_cast<Dtype>(dtype);
  }
  return {};
}

std::uint64_t element_bytes(Dtype dtype) {
  if (dtype <= Dtype::f8_e5m2) return 1;
  if (dtype <= Dtype::bf16) return 2;
  return dtype <= Dtype::f32 ? 4 : 8;
}

std::optional<std::uint64_t> elements_of(const Shape& shape) {
  std::uint64_t product = 1;
  bool overflows = false;
  for (const std::uint64_t extent : shape) {
    if (extent == 0) return 0;
    overflows |= __builtin_mul_overflow(product, extent, &product);
  }
  if (overflows) return {};
  return product;
}

std::string to_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string to_text(const Rectangle& rectangle) {
  std::string text = "[";
  for (std::size_t d = 0; d < rectangle.shape.size(); ++d) {
    text += fmt::format("{}{}:{}", d == 0 ? "" : ", ", rectangle.offset[d],
                        rectangle.offset[d] + rectangle.shape[d]);
  }
  return text + "]";
}

std::uint64_t slice_bytes(const TensorInfo& tensor) {
  const auto elements = elements_of(tensor.slice.shape);
  BATON_CHECK(elements);
  return *elements * element_bytes(tensor.dtype);
}

Status check(const TensorInfo& tensor) {
  const auto wrong = [&](const std::string& what) {
    return failure(Errc::invalid_request, fmt::format("tensor \"{}\": {}", tensor.name, what));
  };
  if (tensor.name.empty() || tensor.name.size() > kTensorNameBytesMax)
    return failure(Errc::invalid_request,
                   fmt::format("the name of a tensor has 1 to {} bytes", kTensorNameBytesMax));
  if (!is_utf8(tensor.name))
    return failure(
        Errc::invalid_request,
        fmt::format("the name of a tensor has to be UTF-8, and \"{}\" is not", wire::as_utf8(tensor.name)));
  if (tensor.name == "__metadata__") return wrong("this name is reserved by the safetensors format");
  const std::size_t dimensions = tensor.global_shape.size();
  if (dimensions > kDimensionsMax)
    return wrong(fmt::format("it has more than {} dimensions", kDimensionsMax));
  if (tensor.slice.offset.size() != dimensions || tensor.slice.shape.size() != dimensions)
    return wrong("its slice has another number of dimensions than its shape");
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::uint64_t end = 0;
    if (__builtin_add_overflow(tensor.slice.offset[d], tensor.slice.shape[d], &end) ||
        end > tensor.global_shape[d])
      return wrong(fmt::format("the slice {} is not within the shape {}", to_text(tensor.slice),
                               to_text(tensor.global_shape)));
  }
  const auto elements = elements_of(tensor.global_shape);
  std::uint64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements, element_bytes(tensor.dtype), &bytes))
    return wrong(
        fmt::format("the shape {} has more bytes than can be counted", to_text(tensor.global_shape)));
  return {};
}

}  // namespace baton::checkpoint
