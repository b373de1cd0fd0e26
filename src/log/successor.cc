#include "log/successor.h"

#include <fmt/format.h>

namespace baton::log {

Result<std::unique_ptr<File>> Successor::make() {
  if (auto removed = disk_.remove(kSuccessorPath); !removed && removed.error().code != Errc::not_found) {
    return std::unexpected(removed.error());
  }
  // Asked first: filling the last free bytes with zeros only to fail would starve everyone else.
  auto free = disk_.free_bytes();
  if (!free) return std::unexpected(free.error());
  if (*free < file_bytes_) {
    return failure(Errc::no_space,
                   fmt::format("the next log segment needs {} bytes and {} are free; free some "
                               "space on the disk of the data directory",
                               file_bytes_, *free));
  }
  auto file = disk_.create(kSuccessorPath, file_bytes_);
  if (!file) {
    (void)disk_.remove(kSuccessorPath);  // what it left behind; the error at hand says more than a second one
    return file;
  }
  if (auto synced = (*file)->sync(); !synced) return std::unexpected(synced.error());
  return file;
}

Status Successor::prepare() {
  const std::lock_guard lock(mutex_);
  if (file_ || taken_) return {};
  auto file = make();
  failed_ = !file;
  if (!file) return std::unexpected(file.error());
  file_ = std::move(*file);
  ready_ = true;
  return {};
}

Result<std::unique_ptr<File>> Successor::take() {
  const std::lock_guard lock(mutex_);
  ready_ = false;
  taken_ = true;
  if (file_) return std::move(file_);
  auto file = make();
  failed_ = !file;
  return file;
}

void Successor::renamed() {
  const std::lock_guard lock(mutex_);
  taken_ = false;
}

}  // namespace baton::log
