// Any bytes as the header of a shard, and behind a right checksum as a manifest: refused, or what is read
// makes sense and is written again as the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "base/check.h"
#include "base/hash.h"
#include "checkpoint/checkpoint_validator.h"
#include "checkpoint/metadata.h"
#include "checkpoint/safetensors.h"

namespace {

using namespace baton;
using namespace baton::checkpoint;

void as_header(std::string_view text) {
  for (const std::uint64_t data_bytes : {std::uint64_t{0}, std::uint64_t{19}}) {
    const auto tensors = parse_safetensors(text, 8 + text.size() + data_bytes);
    if (!tensors) continue;
    std::uint64_t sum = 0;
    for (const TensorMetadata& tensor : *tensors) sum += tensor.bytes;
    BATON_CHECK(sum == data_bytes);
  }
}

void as_manifest(std::string_view text) {
  const std::string sealed = fmt::format("{},\"crc32c\":\"{:08x}\"}}\n", text, crc32c(bytes_of(text)));
  const auto metadata = MetadataSerializer::parse(sealed, "it");
  if (!metadata) return;
  (void)CheckpointValidator::validate(*metadata);
  const auto again = MetadataSerializer::parse(MetadataSerializer::serialize(*metadata), "it");
  BATON_CHECK(again && MetadataSerializer::serialize(*again) == MetadataSerializer::serialize(*metadata));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  as_header(text);
  as_manifest(text);
  return 0;
}
