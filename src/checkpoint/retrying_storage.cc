#include "checkpoint/retrying_storage.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

namespace baton::checkpoint {
namespace {

bool may_pass(const Error& error) { return error.code == Errc::io_failed || error.code == Errc::unavailable; }

void sleep_for(Duration duration) { std::this_thread::sleep_for(std::chrono::milliseconds(duration.ms)); }

RetryOptions completed(RetryOptions options) {
  if (!options.pause) options.pause = sleep_for;
  return options;
}

}  // namespace

RetryingStorage::RetryingStorage(std::unique_ptr<Storage> storage, RetryOptions options)
    : storage_(std::move(storage)), options_(completed(std::move(options))) {}

template <class Operation>
auto RetryingStorage::again(const Operation& operation) const {
  Duration pause = options_.first_pause;
  for (int tried = 1;; ++tried) {
    auto result = operation();
    if (result || tried >= options_.tries || !may_pass(result.error())) return result;
    options_.pause(pause);
    pause = std::min(Duration{pause.ms * 2}, options_.longest_pause);
  }
}

Result<std::unique_ptr<ShardWriter>> RetryingStorage::create(const std::string& path, std::uint64_t bytes) {
  return again([&] { return storage_->create(path, bytes); });
}

class RetryingStorage::Reader final : public ShardReader {
 public:
  Reader(const RetryingStorage& storage, std::string path, std::unique_ptr<ShardReader> opened)
      : storage_(storage), path_(std::move(path)), size_(opened->size()), opened_(std::move(opened)) {}

  std::uint64_t size() const override { return size_; }
  std::string version() const override { return opened_ ? opened_->version() : std::string(); }

  Status read(const std::vector<ByteRange>& ranges, const Sink& sink) override {
    std::uint64_t taken = 0;
    std::optional<Error> refused;  // by the sink, for which the same bytes again would be nothing new
    const auto take = [&](std::uint64_t offset, ByteView piece) -> Status {
      Status fine = sink(offset, piece);
      if (!fine) refused = fine.error();
      taken += piece.size();
      return fine;
    };
    const Status done = storage_.again([&]() -> Status {
      Status read = read_once(behind(ranges, taken), take);
      return refused ? Status{} : read;
    });
    if (refused) return std::unexpected(*refused);
    return done;
  }

 private:
  Status read_once(const std::vector<ByteRange>& ranges, const Sink& take) {
    if (!opened_) {
      auto opened = storage_.storage_->open(path_);
      if (!opened) return std::unexpected(opened.error());
      opened_ = *std::move(opened);
    }
    Status read = opened_->read(ranges, take);
    if (!read) opened_ = nullptr;
    return read;
  }

  // What is left of the ranges without their first bytes.
  static std::vector<ByteRange> behind(const std::vector<ByteRange>& ranges, std::uint64_t taken) {
    std::vector<ByteRange> left;
    for (const ByteRange& range : ranges) {
      const std::uint64_t skipped = std::min(taken, range.bytes);
      taken -= skipped;
      if (skipped < range.bytes) left.push_back({range.begin + skipped, range.bytes - skipped});
    }
    return left;
  }

  const RetryingStorage& storage_;
  const std::string path_;
  const std::uint64_t size_;
  std::unique_ptr<ShardReader> opened_;  // none: after an error
};

Result<std::unique_ptr<ShardReader>> RetryingStorage::open(const std::string& path) {
  auto opened = again([&] { return storage_->open(path); });
  if (!opened) return opened;
  return std::make_unique<Reader>(*this, path, *std::move(opened));
}
// The same bytes again are fine, so an answer that was lost does no harm.
Result<bool> RetryingStorage::put_if_absent(const std::string& path, ByteView bytes) {
  return again([&] { return storage_->put_if_absent(path, bytes); });
}
Result<Bytes> RetryingStorage::get(const std::string& path) {
  return again([&] { return storage_->get(path); });
}
Result<std::vector<StorageEntry>> RetryingStorage::list(const std::string& directory) {
  return again([&] { return storage_->list(directory); });
}
Status RetryingStorage::remove(const std::string& path) {
  return again([&] { return storage_->remove(path); });
}
Status RetryingStorage::remove_directory(const std::string& path) {
  return again([&] { return storage_->remove_directory(path); });
}

}  // namespace baton::checkpoint
