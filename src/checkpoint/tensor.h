// Tensors as a checkpoint knows them: a name, a type of elements, a shape, and the part of it that somebody
// has. A part is a rectangle in row-major order; flat ranges, as sharded optimizers cut them, are a few of
// those (rectangle.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace baton::checkpoint {

inline constexpr std::size_t kDimensionsMax = 16;
inline constexpr std::size_t kTensorNameBytesMax = 4096;

// The types that the safetensors format knows; the words are the format's.
enum class Dtype : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e4m3,
  f8_e5m2,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  i64,
  u64,
  f64
};
inline constexpr Dtype kLastDtype = Dtype::f64;
std::string_view word(Dtype dtype);
std::optional<Dtype> dtype_of(std::string_view word);
std::uint64_t element_bytes(Dtype dtype);

using Shape = std::vector<std::uint64_t>;

// Nothing if the number does not fit into 64 bits. The shape of a scalar is empty and has one element.
std::optional<std::uint64_t> elements_of(const Shape& shape);
std::string to_text(const Shape& shape);  // [8192, 4096]

struct Rectangle {
  Shape offset;
  Shape shape;
  friend auto operator<=>(const Rectangle&, const Rectangle&) = default;
};
std::string to_text(const Rectangle& rectangle);  // [0:1024, 0:4096]

struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape global_shape;
  Rectangle slice;
  friend auto operator<=>(const TensorInfo&, const TensorInfo&) = default;
};
std::uint64_t slice_bytes(const TensorInfo& tensor);  // of the slice
// The name fits, the slice lies within the shape, and its size can be counted.
Status check(const TensorInfo& tensor);

inline Rectangle whole(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }

// Where a rank has a slice, in memory that it keeps unchanged until the save or the staging is over.
struct TensorSource {
  TensorInfo info;
  ByteView data;
};
// Where a rank wants one.
struct TensorTarget {
  TensorInfo info;
  std::span<std::byte> data;
};

}  // namespace baton::checkpoint
