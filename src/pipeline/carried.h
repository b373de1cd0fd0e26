// A value on its way between machines: as text, or, if that is long, as a blob and its name.
#pragma once

#include <optional>
#include <string>

#include "pipeline/blob_store.h"
#include "pipeline/module.h"

namespace baton::pipeline {

inline constexpr std::size_t kInlineBytesMax = 16 << 10;  // larger values go where artifacts go

struct Carried {
  std::string text;
  std::optional<BlobRef> blob;
  friend bool operator==(const Carried&, const Carried&) = default;
};

// Without a store all is text. INVALID_REQUEST: the value cannot be written; others: it could not be stored.
Result<Carried> carry(const ResultType& type, const void* value, BlobStore* store,
                      const std::stop_token& stop);
Result<std::shared_ptr<const void>> take_out(const ResultType& type, const Carried& carried, BlobStore* store,
                                             const std::stop_token& stop);

}  // namespace baton::pipeline
