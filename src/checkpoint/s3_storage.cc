#include "checkpoint/s3_storage.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <map>

#include "base/random_name.h"
#include "checkpoint/s3_file.h"

namespace baton::checkpoint {
namespace {

std::int64_t ms_of(const std::string& time) {  // 2026-11-15T20:00:00.000Z
  tm parts{};
  if (strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return 0;
  return std::int64_t{timegm(&parts)} * 1000;
}

}  // namespace

Result<std::unique_ptr<S3Storage>> S3Storage::open_bucket(S3Options options) {
  std::unique_ptr<S3Storage> storage(new S3Storage(std::move(options)));
  if (auto there = storage->check_bucket(); !there) return std::unexpected(there.error());
  return storage;
}

Status S3Storage::check_bucket() {
  const S3Options& options = client_->options();
  const auto answer =
      client_->ask({.method = "GET",
                    .key = {},
                    .query = {{"list-type", "2"},
                              {"max-keys", "1"},
                              {"prefix", options.prefix.empty() ? "" : options.prefix + "/"}}});
  if (!answer) return std::unexpected(answer.error());
  if (answer->status == 200) return {};
  return std::unexpected(s3_error(*answer, "trying bucket '" + options.bucket + "'"));
}

Status S3Storage::check_writes() {
  const std::lock_guard lock(mutex_);
  if (is_heeded_) return {};
  Status heeded = probe();
  is_heeded_ = heeded.has_value();
  return heeded;
}

Status S3Storage::probe() {
  const std::string name = "probe-" + random_name();
  const ByteView bytes = bytes_of("probe");
  const auto put = [&] {
    return client_->ask({.method = "PUT", .key = name, .headers = {{"if-none-match", "*"}}, .body = bytes});
  };
  const auto first = put();
  if (!first) return std::unexpected(first.error());
  if (first->status != 200 && !(first->status == 412 && first->was_repeated))
    return std::unexpected(s3_error(*first, "writing to bucket '" + client_->options().bucket + "'"));
  const auto second = put();
  const Status removed = remove(name);
  if (!second) return std::unexpected(second.error());
  if (second->status != 412) {
    return failure(
        Errc::unsupported_version,
        fmt::format("{} does not heed If-None-Match: two writers could commit the same checkpoint; "
                    "use a service that does",
                    client_->options().endpoint));
  }
  return removed;
}

Result<std::unique_ptr<ShardWriter>> S3Storage::create(const std::string& path, std::uint64_t bytes) {
  if (auto can = check_writes(); !can) return std::unexpected(can.error());
  const auto there = client_->ask({.method = "HEAD", .key = path});
  if (!there) return std::unexpected(there.error());
  if (there->status == 200) return failure(Errc::conflict, path + " is there already");
  if (there->status != 404) return std::unexpected(s3_error(*there, "looking for " + path));
  return write_s3_file(client_, path, bytes);
}

Result<std::unique_ptr<ShardReader>> S3Storage::open(const std::string& path) {
  const auto there = client_->ask({.method = "HEAD", .key = path});
  if (!there) return std::unexpected(there.error());
  const auto length = there->headers.find("content-length");
  if (there->status != 200 || length == there->headers.end())
    return std::unexpected(s3_error(*there, "opening " + path));
  return read_s3_file(client_, path, s3_number(length->second));
}

Result<bool> S3Storage::put_if_absent(const std::string& path, ByteView bytes) {
  if (auto can = check_writes(); !can) return std::unexpected(can.error());
  const auto answer =
      client_->ask({.method = "PUT", .key = path, .headers = {{"if-none-match", "*"}}, .body = bytes});
  if (!answer) return std::unexpected(answer.error());
  if (answer->status == 200) return true;
  if (answer->status != 412) return std::unexpected(s3_error(*answer, "writing " + path));
  // An earlier try may have succeeded without our hearing of it.
  const auto there = get(path);
  if (!there) return std::unexpected(there.error());
  return std::ranges::equal(*there, bytes);
}

Result<Bytes> S3Storage::get(const std::string& path) {
  auto answer = client_->ask({.method = "GET", .key = path});
  if (!answer) return std::unexpected(answer.error());
  if (answer->status != 200) return std::unexpected(s3_error(*answer, "reading " + path));
  return std::move(answer->body);
}

Result<std::vector<StorageEntry>> S3Storage::list_names(const std::string& beginning, bool delimited) {
  const std::string& prefix = client_->options().prefix;
  const std::string whole = prefix.empty() ? beginning : prefix + "/" + beginning;
  std::vector<StorageEntry> entries;
  std::string token;
  do {
    std::map<std::string, std::string> query{{"list-type", "2"}, {"prefix", whole}};
    if (delimited) query["delimiter"] = "/";
    if (!token.empty()) query["continuation-token"] = token;
    const auto answer = client_->ask({.method = "GET", .key = {}, .query = query});
    if (!answer) return std::unexpected(answer.error());
    if (answer->status != 200) return std::unexpected(s3_error(*answer, "listing " + beginning));
    for (const std::string& part : xml_texts(answer->text(), "Contents")) {
      const auto key = xml_texts(part, "Key");
      const auto bytes = xml_texts(part, "Size");
      const auto modified = xml_texts(part, "LastModified");
      if (key.empty() || key[0].size() <= whole.size()) continue;
      entries.push_back({.name = key[0].substr(whole.size()),
                         .bytes = bytes.empty() ? 0 : s3_number(bytes[0]),
                         .modified_ms = modified.empty() ? 0 : ms_of(modified[0])});
    }
    for (const std::string& part : xml_texts(answer->text(), "CommonPrefixes")) {
      const auto name = xml_texts(part, "Prefix");
      if (name.empty() || name[0].size() <= whole.size() + 1) continue;
      entries.push_back(
          {.name = name[0].substr(whole.size(), name[0].size() - whole.size() - 1), .is_directory = true});
    }
    const auto next = xml_texts(answer->text(), "NextContinuationToken");
    token = next.empty() ? "" : next.front();
  } while (!token.empty());
  std::ranges::sort(entries);
  return entries;
}

Result<std::vector<StorageEntry>> S3Storage::list(const std::string& directory) {
  auto entries = list_names(directory.empty() ? "" : directory + "/", true);
  if (entries && entries->empty() && !directory.empty())
    return failure(Errc::not_found, "there is nothing under " + directory);
  return entries;
}

Status S3Storage::remove(const std::string& path) {
  const auto answer = client_->ask({.method = "DELETE", .key = path});
  if (!answer) return std::unexpected(answer.error());
  if (answer->status == 204 || answer->status == 200 || answer->status == 404) return {};
  return std::unexpected(s3_error(*answer, "removing " + path));
}

Status S3Storage::remove_directory(const std::string& path) {
  const auto entries = list_names(path + "/", false);
  if (!entries) return std::unexpected(entries.error());
  for (const StorageEntry& entry : *entries) {
    if (auto removed = remove(path + "/" + entry.name); !removed) return removed;
  }
  return {};
}

std::string S3Storage::place() const {
  const S3Options& options = client_->options();
  return fmt::format("s3://{}{}{}", options.bucket, options.prefix.empty() ? "" : "/", options.prefix);
}

std::string S3Storage::describe() const {
  return fmt::format("{} at {}", place(), client_->options().endpoint);
}

}  // namespace baton::checkpoint
