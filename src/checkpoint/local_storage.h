// Checkpoints in a directory of a local or shared file system.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "checkpoint/io_engine.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

class BlockMemory;

class LocalStorage final : public Storage {
 public:
  // Makes the directory if it is not there. How to write best is found out by trying, unless it is said.
  static Result<std::unique_ptr<LocalStorage>> open_directory(const std::string& root,
                                                              std::optional<IoMode> mode = {});
  // For tools that only look: NOT_FOUND if it is not there.
  static Result<std::unique_ptr<LocalStorage>> open_existing(const std::string& root);

  Result<std::unique_ptr<ShardWriter>> create(const std::string& path, std::uint64_t bytes) override;
  Result<std::unique_ptr<ShardReader>> open(const std::string& path) override;
  Result<bool> put_if_absent(const std::string& path, ByteView bytes) override;
  Result<Bytes> get(const std::string& path) override;
  Result<std::vector<StorageEntry>> list(const std::string& directory) override;
  Status remove(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  std::string place() const override { return root_; }
  std::string describe() const override;

  IoMode mode() const { return mode_; }

 private:
  LocalStorage(std::string root, IoMode mode);
  std::string full(const std::string& path) const {
    return path.empty() ? root_ : root_ + (root_.ends_with('/') ? "" : "/") + path;
  }
  Status make_directories(const std::string& path);
  // Directories go with the last that was in them. So one may go just before something is put into it: then
  // it is made anew.
  template <class Put>
  Status put_into(const std::string& directory, const Put& put);
  void remove_empty(std::string directory);
  // Makes durable that a name was given or taken away.
  Status settle(const std::string& name);

  const std::string root_;
  const IoMode mode_;
  const std::shared_ptr<BlockMemory> memory_;
  std::mutex mutex_;
  std::map<std::string, Error> unsettled_;  // names of which nobody knows whether they are durable
};

}  // namespace baton::checkpoint
