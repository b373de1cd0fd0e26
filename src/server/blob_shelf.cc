#include "server/blob_shelf.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <vector>

namespace baton::server {
namespace {

namespace fs = std::filesystem;

// Whose folder it is; no task at all, if it is nobody's.
core::TaskId owner_of(const std::string& name) {
  core::TaskId task;
  const char* const end = name.data() + name.size();
  const auto [dash, error] = std::from_chars(name.data(), end, task.epoch);
  if (error != std::errc{} || dash == end || *dash != '-') return {};
  const auto [rest, trouble] = std::from_chars(dash + 1, end, task.lsn);
  return trouble == std::errc{} && rest == end ? task : core::TaskId();
}

}  // namespace

std::string BlobShelf::folder_of(core::TaskId task) const {
  return fmt::format("{}/{}-{}", directory_, task.epoch, task.lsn);
}

void BlobShelf::sweep(std::function<bool(core::TaskId)> is_there) {
  if (std::exchange(sweeps_, true)) return;
  const auto names = std::make_shared<std::vector<std::string>>();
  const auto list = [names, directory = directory_]() -> Status {
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(directory, absent))
      names->push_back(entry.path().filename().string());
    return {};
  };
  disk_.run(list, [this, names, is_there = std::move(is_there)](const Status&) {
    std::erase_if(*names, [&](const std::string& name) { return is_there(owner_of(name)); });
    const auto remove = [names, directory = directory_]() -> Status {
      std::error_code trouble;  // it is tried again the next time
      for (const std::string& name : *names) fs::remove_all(directory + "/" + name, trouble);
      return {};
    };
    disk_.run(remove, [this](const Status&) { sweeps_ = false; });
  });
}

}  // namespace baton::server
