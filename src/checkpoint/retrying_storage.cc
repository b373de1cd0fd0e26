#include "checkpoint/retrying_storage.h"

#include <algorithm>
#include <chrono>
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

RetryingStorage::RetryingStorage(Storage& storage, RetryOptions options)
    : storage_(storage), options_(completed(std::move(options))) {}

template <class Operation>
auto RetryingStorage::again(const Operation& operation) {
  Duration pause = options_.first_pause;
  for (int tried = 1;; ++tried) {
    auto result = operation();
    if (result || tried >= options_.tries || !may_pass(result.error())) return result;
    options_.pause(pause);
    pause = std::min(Duration{pause.ms * 2}, options_.longest_pause);
  }
}

Result<std::unique_ptr<ShardWriter>> RetryingStorage::create(const std::string& path, std::uint64_t bytes) {
  return again([&] { return storage_.create(path, bytes); });
}
Result<std::unique_ptr<ShardReader>> RetryingStorage::open(const std::string& path) {
  return again([&] { return storage_.open(path); });
}
// The same bytes again are fine, so an answer that was lost does no harm.
Result<bool> RetryingStorage::put_if_absent(const std::string& path, ByteView bytes) {
  return again([&] { return storage_.put_if_absent(path, bytes); });
}
Result<Bytes> RetryingStorage::get(const std::string& path) {
  return again([&] { return storage_.get(path); });
}
Result<std::vector<StorageEntry>> RetryingStorage::list(const std::string& directory) {
  return again([&] { return storage_.list(directory); });
}
Status RetryingStorage::remove(const std::string& path) {
  return again([&] { return storage_.remove(path); });
}
Status RetryingStorage::remove_directory(const std::string& path) {
  return again([&] { return storage_.remove_directory(path); });
}

}  // namespace baton::checkpoint
