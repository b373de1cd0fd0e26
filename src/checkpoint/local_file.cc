#include "checkpoint/local_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/descriptor.h"
#include "base/files.h"
#include "base/system_error.h"
#include "checkpoint/checksum.h"

namespace baton::checkpoint {
namespace {

std::uint64_t rounded_up(std::uint64_t bytes) {
  return (bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
}

class LocalWriter final : public ShardWriter {
 public:
  LocalWriter(Descriptor file, std::string path, std::uint64_t bytes, IoMode mode,
              std::shared_ptr<BlockMemory> memory)
      : file_(std::move(file)),
        path_(std::move(path)),
        bytes_(bytes),
        mode_(mode),
        buffers_(std::move(memory)) {
    free_.reserve(kTransfersMax);
    for (std::size_t index = 1; index < kTransfersMax; ++index) free_.push_back(index);
  }
  ~LocalWriter() override {
    for (; under_way_ > 0; --under_way_) (void)engine_->wait();  // the memory is theirs until then
    if (!is_finished_) ::unlink(path_.c_str());
  }
  LocalWriter(const LocalWriter&) = delete;
  LocalWriter& operator=(const LocalWriter&) = delete;

  Status append(ByteView bytes) override {
    while (!bytes.empty()) {
      const std::size_t part = std::min<std::size_t>(bytes.size(), kBlockBytes - filled_);
      std::memcpy(buffers_.at(current_) + filled_, bytes.data(), part);
      filled_ += part;
      bytes = bytes.subspan(part);
      if (filled_ < kBlockBytes) break;
      if (auto written = write_block(); !written) return written;
    }
    return {};
  }

  Status finish() override {
    const std::uint64_t size = offset_ + filled_;
    BATON_CHECK(size == bytes_);
    if (filled_ > 0) {
      std::memset(buffers_.at(current_) + filled_, 0, rounded_up(filled_) - filled_);
      if (auto written = write_block(); !written) return written;
    }
    while (under_way_ > 0) await();
    if (trouble_) return std::unexpected(*trouble_);
    if (::ftruncate(file_.number(), static_cast<off_t>(size)) != 0)
      return std::unexpected(system_error(errno, "write", path_));
    // Not again after an error: the kernel may have dropped the pages, and the next sync would report
    // success.
    if (::fsync(file_.number()) != 0) return std::unexpected(system_error(errno, "sync", path_));
    if (auto synced = sync_directory(parent_of(path_)); !synced) return synced;
    is_finished_ = true;
    return {};
  }

 private:
  Status write_block() {
    if (trouble_) return std::unexpected(*trouble_);
    sizes_[current_] = rounded_up(filled_);
    offsets_[current_] = offset_;
    if (bytes_ <= kBlockBytes) {  // nothing to overlap it with
      write_rest(current_, 0);
      offset_ += std::exchange(filled_, 0);
      return {};
    }
    if (!engine_) engine_ = engine_for(mode_);
    engine_->submit({Transfer::Direction::write, file_.number(), offset_, buffers_.at(current_),
                     sizes_[current_], current_});
    ++under_way_;
    offset_ += filled_;
    filled_ = 0;
    while (free_.empty()) await();
    current_ = free_.back();
    free_.pop_back();
    return {};
  }

  void await() {
    const Completion done = engine_->wait();
    --under_way_;
    free_.push_back(done.tag);
    if (done.result == -EINTR || done.result == -EAGAIN) return write_rest(done.tag, 0);
    if (done.result < 0) {
      if (!trouble_) trouble_ = system_error(static_cast<int>(-done.result), "write", path_);
      return;
    }
    const auto moved = static_cast<std::size_t>(done.result);
    if (moved < sizes_[done.tag]) write_rest(done.tag, moved);
  }

  // A write may be cut short, at the end of the space for example; trying again tells why.
  void write_rest(std::size_t index, std::size_t moved) {
    while (moved < sizes_[index] && !trouble_) {
      const ssize_t more = ::pwrite(file_.number(), buffers_.at(index) + moved, sizes_[index] - moved,
                                    static_cast<off_t>(offsets_[index] + moved));
      if (more < 0 && errno == EINTR) continue;
      if (more <= 0) {
        trouble_ = system_error(more < 0 ? errno : EIO, "write", path_);
        return;
      }
      moved += static_cast<std::size_t>(more);
    }
  }

  const Descriptor file_;
  const std::string path_;
  const std::uint64_t bytes_;
  const IoMode mode_;
  BlockBuffers buffers_;
  std::array<std::uint64_t, kTransfersMax> offsets_{};
  std::array<std::size_t, kTransfersMax> sizes_{};
  std::vector<std::size_t> free_;
  std::size_t current_ = 0;
  std::size_t filled_ = 0;    // of the current buffer
  std::uint64_t offset_ = 0;  // where the current buffer will lie
  std::size_t under_way_ = 0;
  std::optional<Error> trouble_;  // the first one, which is final
  bool is_finished_ = false;
  std::unique_ptr<IoEngine> engine_;
};

class LocalReader final : public ShardReader {
 public:
  LocalReader(Descriptor file, std::string path, std::uint64_t size, IoMode mode,
              std::shared_ptr<BlockMemory> memory)
      : file_(std::move(file)),
        path_(std::move(path)),
        size_(size),
        mode_(mode),
        buffers_(std::move(memory)) {}
  // After a sink that threw, the memory is theirs until then.
  ~LocalReader() override {
    for (; under_way_ > 0; --under_way_) (void)engine_->wait();
  }
  LocalReader(const LocalReader&) = delete;
  LocalReader& operator=(const LocalReader&) = delete;

  std::uint64_t size() const override { return size_; }
  std::string version() const override {
    struct stat now{};
    if (::fstat(file_.number(), &now) != 0) return {};
    return fmt::format("{}:{} {}.{:09}", now.st_dev, now.st_ino, now.st_mtim.tv_sec, now.st_mtim.tv_nsec);
  }

  // The pieces are handed out in order; those behind are being read meanwhile.
  Status read(const std::vector<ByteRange>& ranges, const Sink& sink) override {
    const std::vector<ByteRange> pieces = pieces_of(ranges);
    if (pieces.size() == 1) return hand_out(pieces[0], 0, 0, sink);  // nothing to overlap it with
    if (!engine_) engine_ = engine_for(mode_);
    std::array<std::optional<std::int64_t>, kTransfersMax> results;
    std::size_t begun = 0;
    Status status;
    for (std::size_t next = 0; next < pieces.size() && status; ++next) {
      for (; begun < pieces.size() && begun < next + kTransfersMax; ++begun)
        begin(pieces[begun], begun % kTransfersMax);
      const std::size_t slot = next % kTransfersMax;
      while (!results[slot]) take(results);
      status = hand_out(pieces[next], slot, *std::exchange(results[slot], {}), sink);
    }
    while (under_way_ > 0) take(results);
    return status;
  }

 private:
  static std::vector<ByteRange> pieces_of(const std::vector<ByteRange>& ranges) {
    std::vector<ByteRange> pieces;
    for (ByteRange range : ranges) {
      while (range.bytes > 0) {
        const std::uint64_t part = std::min(range.bytes, kBlockBytes - range.begin % kBlockBytes);
        pieces.push_back({range.begin, part});
        range.begin += part;
        range.bytes -= part;
      }
    }
    return pieces;
  }

  // From whole aligned blocks, as reading past the page cache demands.
  void begin(const ByteRange& piece, std::size_t slot) {
    const std::uint64_t start = piece.begin / kMemoryAlignment * kMemoryAlignment;
    const std::uint64_t end = rounded_up(piece.begin + piece.bytes);
    engine_->submit({Transfer::Direction::read, file_.number(), start, buffers_.at(slot), end - start, slot});
    ++under_way_;
  }

  void take(std::array<std::optional<std::int64_t>, kTransfersMax>& results) {
    const Completion done = engine_->wait();
    --under_way_;
    results[done.tag] = done.result;
  }

  Status hand_out(const ByteRange& piece, std::size_t slot, std::int64_t result, const Sink& sink) {
    if (result == -EINTR || result == -EAGAIN) result = 0;  // the rest is read below, and that is all of it
    if (result < 0) return std::unexpected(system_error(static_cast<int>(-result), "read", path_));
    const std::size_t skip = piece.begin % kMemoryAlignment;
    auto got = static_cast<std::size_t>(result);
    while (got < skip + piece.bytes) {
      const ssize_t more =
          ::pread(file_.number(), buffers_.at(slot) + got, rounded_up(skip + piece.bytes) - got,
                  static_cast<off_t>(piece.begin - skip + got));
      if (more < 0 && errno == EINTR) continue;
      if (more < 0) return std::unexpected(system_error(errno, "read", path_));
      if (more == 0)
        return failure(Errc::corrupt,
                       fmt::format("{} ends before byte {}", path_, piece.begin + piece.bytes));
      got += static_cast<std::size_t>(more);
    }
    return sink(piece.begin, {buffers_.at(slot) + skip, piece.bytes});
  }

  const Descriptor file_;
  const std::string path_;
  const std::uint64_t size_;
  const IoMode mode_;
  BlockBuffers buffers_;
  std::size_t under_way_ = 0;
  std::unique_ptr<IoEngine> engine_;
};

// A new file goes again if there is no memory to write it with.
std::unique_ptr<ShardWriter> made_writer(Descriptor file, const std::string& path, std::uint64_t bytes,
                                         IoMode mode, std::shared_ptr<BlockMemory> memory) {
  try {
    return std::make_unique<LocalWriter>(std::move(file), path, bytes, mode, std::move(memory));
  } catch (const std::bad_alloc&) {
    ::unlink(path.c_str());
    throw;
  }
}

}  // namespace

Result<std::unique_ptr<ShardWriter>> create_local_file(const std::string& path, std::uint64_t bytes,
                                                       IoMode mode, std::shared_ptr<BlockMemory> memory) {
  const int direct = mode == IoMode::buffered ? 0 : O_DIRECT;
  const int descriptor = open_again(path, O_RDWR | O_CREAT | O_EXCL | direct, 0666);
  if (descriptor < 0 && errno == EEXIST)
    return failure(Errc::conflict, fmt::format("{} is there already, and is not written over", path));
  if (descriptor < 0) return std::unexpected(system_error(errno, "create", path));
  auto writer = made_writer(Descriptor(descriptor), path, bytes, mode, std::move(memory));
  // More than it will have, so that one which is never finished is no file of that size.
  const std::uint64_t reserved = rounded_up(bytes) + kMemoryAlignment;
  if (bytes > 0 && ::fallocate(descriptor, 0, 0, static_cast<off_t>(reserved)) != 0 && errno != EOPNOTSUPP &&
      errno != ENOSYS)
    return std::unexpected(system_error(errno, "reserve space for", path));
  return writer;
}

Result<std::unique_ptr<ShardReader>> open_local_file(const std::string& path, IoMode mode,
                                                     std::shared_ptr<BlockMemory> memory) {
  int descriptor = mode == IoMode::buffered ? -1 : open_again(path, O_RDONLY | O_DIRECT, 0666);
  if (descriptor < 0) descriptor = open_again(path, O_RDONLY, 0666);
  if (descriptor < 0) return std::unexpected(system_error(errno, "open", path));
  Descriptor file(descriptor);
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return std::unexpected(system_error(errno, "look at", path));
  return std::make_unique<LocalReader>(std::move(file), path, static_cast<std::uint64_t>(status.st_size),
                                       mode, std::move(memory));
}

}  // namespace baton::checkpoint
