// Checkpoints at an S3-compatible service. A file is an upload in parts, which nobody sees before it is
// complete; a name is taken by a conditional put, which one writer wins. Nothing is renamed or copied.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "checkpoint/s3_client.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

class S3Storage final : public Storage {
 public:
  // Asks the service whether the bucket is there. Whether it heeds the condition of a put is tried before the
  // first one: without it two writers could both win. So who just reads needs no permission to write.
  static Result<std::unique_ptr<S3Storage>> open_bucket(S3Options options);

  Result<std::unique_ptr<ShardWriter>> create(const std::string& path, std::uint64_t bytes) override;
  Result<std::unique_ptr<ShardReader>> open(const std::string& path) override;
  Result<bool> put_if_absent(const std::string& path, ByteView bytes) override;
  Result<Bytes> get(const std::string& path) override;
  Result<std::vector<StorageEntry>> list(const std::string& directory) override;
  Status remove(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  std::string place() const override;
  std::string describe() const override;

 private:
  explicit S3Storage(S3Options options) : client_(std::make_shared<S3Client>(std::move(options))) {}
  Status check_bucket();
  Status check_writes();  // once
  Status probe();
  // All names with this beginning; with a delimiter those below count as one directory.
  Result<std::vector<StorageEntry>> list_names(const std::string& beginning, bool delimited);

  const std::shared_ptr<S3Client> client_;
  std::mutex mutex_;
  bool is_heeded_ = false;  // the condition, as far as that is known
};

}  // namespace baton::checkpoint
