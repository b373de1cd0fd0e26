// A storage on which what may be passing is tried again, with pauses that grow: a network file system or a
// service that stumbles. Retries are here and nowhere else; a collective is never repeated by one rank alone.
//
// What cannot pass (a full disk, no permission, damage) is an error at once. So is a file that could not be
// written or synced: what is on the medium is unknown, and nothing may refer to it. A name that could not be
// made durable stays an error, however often it is tried (LocalStorage). A file that is read goes
// on where it got to; opened anew, for a file system that came back may know no descriptors of before.
#pragma once

#include <functional>
#include <memory>

#include "base/time.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

struct RetryOptions {
  int tries = 4;
  Duration first_pause = milliseconds(100);
  Duration longest_pause = seconds(5);
  std::function<void(Duration)> pause;  // empty: sleeps
};

class RetryingStorage final : public Storage {
 public:
  explicit RetryingStorage(std::unique_ptr<Storage> storage, RetryOptions options = {});

  Result<std::unique_ptr<ShardWriter>> create(const std::string& path, std::uint64_t bytes) override;
  Result<std::unique_ptr<ShardReader>> open(const std::string& path) override;
  Result<bool> put_if_absent(const std::string& path, ByteView bytes) override;
  Result<Bytes> get(const std::string& path) override;
  Result<std::vector<StorageEntry>> list(const std::string& directory) override;
  Status remove(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  std::string place() const override { return storage_->place(); }
  std::string describe() const override { return storage_->describe(); }

 private:
  class Reader;
  template <class Operation>
  auto again(const Operation& operation) const;

  const std::unique_ptr<Storage> storage_;
  const RetryOptions options_;
};

}  // namespace baton::checkpoint
