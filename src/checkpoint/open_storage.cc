#include "checkpoint/open_storage.h"

#include "checkpoint/local_storage.h"
#include "checkpoint/retrying_storage.h"
#include "checkpoint/s3_storage.h"

namespace baton::checkpoint {

Result<std::unique_ptr<Storage>> open_storage(const std::string& place, Opening opening) {
  if (place.starts_with("s3://")) {
    auto options = S3Options::from_url(place);
    if (!options) return std::unexpected(options.error());
    return S3Storage::open_bucket(std::move(*options));
  }
  auto directory =
      opening == Opening::made ? LocalStorage::open_directory(place) : LocalStorage::open_existing(place);
  if (!directory) return std::unexpected(directory.error());
  return std::make_unique<RetryingStorage>(*std::move(directory));
}

}  // namespace baton::checkpoint
