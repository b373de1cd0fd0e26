#include "pipeline/carried.h"

#include <exception>

#include "pipeline/patiently.h"

namespace baton::pipeline {

Result<Carried> carry(const ResultType& type, const void* value, BlobStore* store,
                      const std::stop_token& stop) {
  Carried carried;
  try {
    carried.text = type.encode(value);
  } catch (const std::exception& failed) {
    return failure(Errc::invalid_request, std::string("it cannot be written: ") + failed.what());
  }
  if (carried.text.size() <= kInlineBytesMax || store == nullptr) return carried;
  auto blob = patiently([&] { return store->put(bytes_of_text(carried.text), stop); }, stop);
  if (!blob)
    return failure(blob.error().code, "its " + std::to_string(carried.text.size()) +
                                          " bytes could not be stored in " + store->place() + ": " +
                                          blob.error().message);
  return Carried{{}, std::move(*blob)};
}

Result<std::shared_ptr<const void>> take_out(const ResultType& type, const Carried& carried, BlobStore* store,
                                             const std::stop_token& stop) {
  if (!carried.blob) return type.decode(carried.text);
  if (store == nullptr)
    return failure(Errc::not_found, "it is stored where this machine cannot fetch it (--blobs)");
  auto text = patiently([&] { return fetch_text(*store, *carried.blob, stop); }, stop);
  if (!text) return std::unexpected(text.error());
  return type.decode(*text);
}

}  // namespace baton::pipeline
