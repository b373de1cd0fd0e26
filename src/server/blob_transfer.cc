#include "server/blob_transfer.h"

#include <algorithm>
#include <utility>

namespace baton::server {
namespace {

constexpr Parameter kParameters[] = {
    {"task", Kind::text, Place::option, "Whose it is: its id, or key: and its key"}};

}  // namespace

std::span<const Parameter> blob_parameters() { return kParameters; }

void BlobTransfer::then(Syncer::Sync work, std::function<void(const Status&)> next) {
  shelf_.disk().run(std::move(work),
                    [self = shared_from_this(), next = std::move(next)](const Status& done) { next(done); });
}

void BlobUpload::begin() {
  then([file = file_] { return file->open(); },
       [this](const Status& opened) {
         if (!opened) has_failed_ = true, finish(opened);
       });
  if (left_ == 0) write({});
}

void BlobUpload::receive(std::string& input) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
  if (count == 0) return;
  moved_ += count;
  left_ -= count;
  std::string bytes = input.substr(0, count);
  input.erase(0, count);
  write(std::move(bytes));
}

void BlobUpload::write(std::string bytes) {
  held_ += bytes.size();
  const bool is_last = left_ == 0;
  const std::size_t count = bytes.size();
  const auto work = [file = file_, bytes = std::move(bytes), is_last]() -> Status {
    auto done = file->append(bytes);
    return done && is_last ? file->finish() : done;
  };
  then(work, [this, count, is_last](const Status& done) {
    held_ -= count;
    if (has_failed_) return;
    has_failed_ = !done;
    if (!done || is_last)
      finish(done);
    else if (tells_.changed)
      tells_.changed();
  });
}

void BlobDownload::begin() {
  const auto size = std::make_shared<std::uint64_t>();
  then(
      [file = file_, size]() -> Status {
        auto opened = file->open();
        if (!opened) return std::unexpected(opened.error());
        *size = *opened;
        return {};
      },
      [this, size](const Status& opened) {
        if (!opened) return finish(opened);
        left_ = *size;
        reads_ = false;
        // Whoever wants the head alone lets go of us while it runs, and of all that we tell.
        if (const auto begins = std::exchange(tells_.begins, {})) begins(*size);
      });
}

void BlobDownload::send(std::string& output) {
  if (reads_ || output.size() >= kPiece) return;
  if (!piece_->empty()) {
    moved_ += piece_->size();
    output += *piece_;
    piece_->clear();
  }
  left_ == 0 ? finish({}) : read_next();
}

void BlobDownload::read_next() {
  reads_ = true;
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(left_, kPiece));
  left_ -= bytes;
  then([file = file_, piece = piece_, bytes] { return file->read(*piece, bytes); },
       [this](const Status& read) {
         reads_ = false;
         if (!read) return finish(read);
         if (tells_.changed) tells_.changed();
       });
}

}  // namespace baton::server
