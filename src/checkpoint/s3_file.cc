#include "checkpoint/s3_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <future>

#include "checkpoint/checksum.h"
#include "checkpoint/with_memory.h"

namespace baton::checkpoint {
namespace {

constexpr std::size_t kPartBytes = std::size_t{16} << 20;  // a service takes 10 000 of them, 5 MiB at least
constexpr std::size_t kPartsAtOnce = 4;
constexpr std::size_t kPartsMax = 10'000;
constexpr std::uint64_t kReadAtOnce = std::uint64_t{8} << 20;
// Beside the caller; by the caller, when it asks for the result, if there is no thread to be had.
constexpr std::launch kBeside = std::launch::async | std::launch::deferred;

// Parts go up beside each other while the next one is filled.
class S3Writer final : public ShardWriter {
 public:
  S3Writer(std::shared_ptr<S3Client> client, std::string path, std::uint64_t bytes)
      : client_(std::move(client)),
        path_(std::move(path)),
        part_bytes_(
            std::max<std::size_t>(kPartBytes, static_cast<std::size_t>(bytes / (kPartsMax - 1) + 1))) {}

  ~S3Writer() override {
    under_way_.clear();
    if (upload_.empty() || is_finished_) return;
    (void)with_memory("end an upload", [&] {
      return client_->ask({.method = "DELETE", .key = path_, .query = {{"uploadId", upload_}}});
    });
  }

  Status append(ByteView bytes) override {
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), part_bytes_ - part_.size());
      part_.insert(part_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
      bytes = bytes.subspan(count);
      written_ += count;
      if (part_.size() < part_bytes_) continue;
      if (auto sent = send_part(); !sent) return sent;
    }
    return {};
  }

  Status finish() override {
    Status done = upload_.empty() ? put_whole() : complete();
    is_finished_ = done.has_value();
    return done;
  }

 private:
  Status send_part() {
    if (upload_.empty()) {
      if (auto begun = begin(); !begun) return begun;
    }
    if (under_way_.size() >= kPartsAtOnce) {
      if (auto done = await_one(); !done) return done;
    }
    // Shared with who sends them, who may be somebody else than was asked first.
    const auto bytes = std::make_shared<const Bytes>(std::move(part_));
    const auto send = [this, number = ++parts_, bytes]() -> Result<std::string> {
      const auto answer =
          client_->ask({.method = "PUT",
                        .key = path_,
                        .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload_}},
                        .body = *bytes});
      if (!answer) return std::unexpected(answer.error());
      if (answer->status != 200) return std::unexpected(s3_error(*answer, "a part of " + path_));
      const auto tag = answer->headers.find("etag");
      return tag == answer->headers.end() ? std::string() : tag->second;
    };
    under_way_.push_back(std::async(kBeside, send));
    part_ = {};
    part_.reserve(part_bytes_);
    return {};
  }

  Status begin() {
    const auto answer = client_->ask({.method = "POST", .key = path_, .query = {{"uploads", ""}}});
    if (!answer) return std::unexpected(answer.error());
    const auto ids = xml_texts(answer->text(), "UploadId");
    if (answer->status != 200 || ids.empty()) return std::unexpected(s3_error(*answer, "beginning " + path_));
    upload_ = ids.front();
    return {};
  }

  Status await_one() {
    auto tag = under_way_.front().get();
    under_way_.pop_front();
    if (!tag) return std::unexpected(tag.error());
    tags_.push_back(std::move(*tag));
    return {};
  }

  Status put_whole() {
    const auto answer =
        client_->ask({.method = "PUT", .key = path_, .headers = {{"if-none-match", "*"}}, .body = part_});
    if (!answer) return std::unexpected(answer.error());
    return ended(*answer);
  }

  Status complete() {
    if (!part_.empty()) {
      if (auto sent = send_part(); !sent) return sent;
    }
    while (!under_way_.empty()) {
      if (auto done = await_one(); !done) return done;
    }
    std::string parts;
    for (std::size_t i = 0; i < tags_.size(); ++i)
      parts += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, tags_[i]);
    const std::string body = "<CompleteMultipartUpload>" + parts + "</CompleteMultipartUpload>";
    const auto answer = client_->ask({.method = "POST",
                                      .key = path_,
                                      .query = {{"uploadId", upload_}},
                                      .headers = {{"if-none-match", "*"}},
                                      .body = bytes_of(body)});
    if (!answer) return std::unexpected(answer.error());
    // Which was said again and again, then.
    if (answer->status == 200 && answer->text().find("<Error>") != std::string_view::npos)
      return std::unexpected(s3_error(*answer, "completing " + path_));
    return ended(*answer);
  }

  // The names of files are never used twice, so what is there after a repeated try is ours.
  Status ended(const S3Answer& answer) {
    if (answer.status == 200) return {};
    if (answer.was_repeated && (answer.status == 404 || answer.status == 412)) {
      const auto there = client_->ask({.method = "HEAD", .key = path_});
      if (!there) return std::unexpected(there.error());
      const auto length = there->headers.find("content-length");
      if (there->status == 200 && length != there->headers.end() && s3_number(length->second) == written_)
        return {};
    }
    return std::unexpected(s3_error(answer, "writing " + path_));
  }

  const std::shared_ptr<S3Client> client_;
  const std::string path_;
  const std::size_t part_bytes_;
  std::string upload_;
  Bytes part_;
  std::size_t parts_ = 0;
  std::uint64_t written_ = 0;
  std::vector<std::string> tags_;  // of the parts that are there
  bool is_finished_ = false;
  std::deque<std::future<Result<std::string>>> under_way_;  // goes first: they use the rest
};

// The next pieces are asked for while the sink looks at one.
class S3Reader final : public ShardReader {
 public:
  S3Reader(std::shared_ptr<S3Client> client, std::string path, std::uint64_t size)
      : client_(std::move(client)), path_(std::move(path)), size_(size) {}

  std::uint64_t size() const override { return size_; }

  Status read(const std::vector<ByteRange>& ranges, const Sink& sink) override {
    std::deque<ByteRange> wanted;
    for (const ByteRange& range : ranges) {
      for (std::uint64_t at = range.begin, end = range.begin + range.bytes; at < end;) {
        const std::uint64_t count = std::min(end - at, kReadAtOnce - at % kReadAtOnce);
        wanted.push_back({at, count});
        at += count;
      }
    }
    std::deque<std::pair<ByteRange, std::future<Result<Bytes>>>> under_way;
    while (!wanted.empty() || !under_way.empty()) {
      while (!wanted.empty() && under_way.size() < kPartsAtOnce) {
        under_way.emplace_back(wanted.front(),
                               std::async(kBeside, [this, range = wanted.front()] { return fetch(range); }));
        wanted.pop_front();
      }
      const ByteRange range = under_way.front().first;
      const auto bytes = under_way.front().second.get();
      under_way.pop_front();
      if (!bytes) return std::unexpected(bytes.error());
      if (auto taken = give(range, *bytes, sink); !taken) return taken;
    }
    return {};
  }

 private:
  Result<Bytes> fetch(ByteRange range) const {
    const std::string text = fmt::format("bytes={}-{}", range.begin, range.begin + range.bytes - 1);
    auto answer = client_->ask({.method = "GET", .key = path_, .headers = {{"range", text}}});
    if (!answer) return std::unexpected(answer.error());
    const bool is_whole = answer->status == 200 && range.begin == 0 && answer->body.size() >= range.bytes;
    if (answer->status != 206 && !is_whole) return std::unexpected(s3_error(*answer, "reading " + path_));
    if (!is_whole && answer->body.size() != range.bytes) {
      return failure(Errc::io_failed,
                     fmt::format("reading {}: {} of {} bytes came", path_, answer->body.size(), range.bytes));
    }
    answer->body.resize(range.bytes);
    return std::move(answer->body);
  }

  static Status give(ByteRange range, ByteView bytes, const Sink& sink) {
    while (!bytes.empty()) {
      const std::uint64_t count =
          std::min<std::uint64_t>(bytes.size(), kBlockBytes - range.begin % kBlockBytes);
      if (auto taken = sink(range.begin, bytes.first(count)); !taken) return taken;
      bytes = bytes.subspan(count);
      range.begin += count;
    }
    return {};
  }

  const std::shared_ptr<S3Client> client_;
  const std::string path_;
  const std::uint64_t size_;
};

}  // namespace

std::uint64_t s3_number(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::unique_ptr<ShardWriter> write_s3_file(std::shared_ptr<S3Client> client, const std::string& path,
                                           std::uint64_t bytes) {
  return std::make_unique<S3Writer>(std::move(client), path, bytes);
}

std::unique_ptr<ShardReader> read_s3_file(std::shared_ptr<S3Client> client, const std::string& path,
                                          std::uint64_t bytes) {
  return std::make_unique<S3Reader>(std::move(client), path, bytes);
}

}  // namespace baton::checkpoint
