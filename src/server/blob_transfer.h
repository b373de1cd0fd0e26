// A blob on its way between a connection and the disk, one piece after the other: no more than a megabyte of
// it is in memory, and the loop never waits for the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "server/arguments.h"
#include "server/blob_file.h"
#include "server/blob_shelf.h"

namespace baton::server {

inline constexpr std::string_view kBlobsPath = "/v1/blobs/";
std::span<const Parameter> blob_parameters();

// Shared with what the disk is asked for: the connection may go meanwhile.
class BlobTransfer : public std::enable_shared_from_this<BlobTransfer> {
 public:
  struct Tells {
    std::function<void(const Status&)> finished;
    std::function<void(std::uint64_t bytes)> begins;  // a download, which is that long
    std::function<void()> changed;                    // there may be something to send, or room for more
  };

  BlobTransfer(BlobShelf& shelf, Tells tells)
      : shelf_(shelf), count_(shelf.transfers), tells_(std::move(tells)) {
    ++*count_;
  }
  virtual ~BlobTransfer() { --*count_; }
  BlobTransfer(const BlobTransfer&) = delete;
  BlobTransfer& operator=(const BlobTransfer&) = delete;

  virtual void begin() = 0;
  virtual void receive(std::string& input) = 0;  // takes its part of it
  virtual void send(std::string& output) = 0;    // adds to it, if there is room and something to add
  virtual bool wants_more() const = 0;
  virtual bool is_whole() const { return true; }  // nothing more will be received
  std::uint64_t moved() const { return moved_; }  // bytes, so far
  // Nobody is told of anything any more. The file is closed where the disk is waited for: one that goes with
  // gigabytes in it takes long.
  void let_go() {
    tells_ = {};
    shelf_.disk().run(
        [file = take_file()]() mutable -> Status {
          file.reset();
          return {};
        },
        [](const Status&) {});
  }

 protected:
  virtual std::shared_ptr<void> take_file() = 0;
  // Asks the disk, and goes on here.
  void then(Syncer::Sync work, std::function<void(const Status&)> next);
  void finish(const Status& how) {
    if (const auto finished = std::exchange(tells_.finished, {})) finished(how);
  }

  BlobShelf& shelf_;
  const std::shared_ptr<std::size_t> count_;
  Tells tells_;
  std::uint64_t moved_ = 0;
};

class BlobUpload final : public BlobTransfer {
 public:
  BlobUpload(BlobShelf& shelf, core::TaskId task, const std::string& hash, std::uint64_t bytes, Tells tells)
      : BlobTransfer(shelf, std::move(tells)),
        file_(std::make_shared<NewBlobFile>(shelf.folder_of(task), hash, bytes, shelf.set_aside_bytes)),
        left_(bytes) {}

  void begin() override;
  void receive(std::string& input) override;
  void send(std::string&) override {}
  bool wants_more() const override { return left_ > 0 && held_ < kHeldMax; }
  bool is_whole() const override { return left_ == 0; }

 private:
  static constexpr std::size_t kHeldMax = std::size_t{1} << 20;
  std::shared_ptr<void> take_file() override { return std::exchange(file_, nullptr); }
  void write(std::string bytes);

  std::shared_ptr<NewBlobFile> file_;
  std::uint64_t left_;    // still to come
  std::size_t held_ = 0;  // on its way to the disk
  bool has_failed_ = false;
};

class BlobDownload final : public BlobTransfer {
 public:
  BlobDownload(BlobShelf& shelf, core::TaskId task, const std::string& hash, Tells tells)
      : BlobTransfer(shelf, std::move(tells)),
        file_(std::make_shared<BlobFile>(shelf.folder_of(task) + "/" + hash)) {}

  void begin() override;
  void receive(std::string&) override {}
  void send(std::string& output) override;
  bool wants_more() const override { return false; }

 private:
  static constexpr std::size_t kPiece = std::size_t{256} << 10;
  std::shared_ptr<void> take_file() override { return std::exchange(file_, nullptr); }
  void read_next();

  std::shared_ptr<BlobFile> file_;
  const std::shared_ptr<std::string> piece_ = std::make_shared<std::string>();  // the disk's while it reads
  std::uint64_t left_ = 0;                                                      // still to be read
  bool reads_ = true;
};

}  // namespace baton::server
