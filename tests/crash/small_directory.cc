#include "tests/crash/small_directory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "engine/coordinator.h"
#include "engine/recovery.h"
#include "engine/snapshot.h"
#include "log/survey.h"
#include "tests/temporary_directory.h"

namespace baton::crash {
namespace {

void must(const auto& result) { BATON_CHECK(result.has_value()); }

void submit(Coordinator& coordinator, const std::string& queue, int number) {
  must(coordinator.submit({.ns = "n",
                           .queue = queue,
                           .payload = Blob("payload " + std::to_string(number)),
                           .key = queue + std::to_string(number)}));
}

void complete(Coordinator& coordinator, const std::string& queue) {
  const auto leased = coordinator.lease({.ns = "n", .queues = {queue}, .worker = "w"});
  BATON_CHECK(leased && *leased);
  must(coordinator.complete(
      {.ns = "n", .task = (*leased)->task, .lease = (*leased)->lease, .result = Blob("result")}));
}

// One large payload keeps its segment from being copied forward; small ones come and go.
void live(Coordinator& coordinator, Ending ending) {
  for (int round = 0; round < 5; ++round) {
    const bool stays = round == 1;
    if (stays) {
      must(coordinator.submit(
          {.ns = "n", .queue = "stays", .payload = Blob(std::string(12 << 10, 's')), .key = "large"}));
    }
    for (int count = 0; count < 3; ++count) {
      submit(coordinator, "goes", round * 10 + count);
      complete(coordinator, "goes");
    }
    if (!stays) must(coordinator.purge({.ns = "n", .queue = "goes"}));
    must(coordinator.make_snapshot());
  }
  submit(coordinator, "last", 1);
  must(coordinator.lease({.ns = "n", .queues = {"last"}, .worker = "w", .ttl = hours(20)}));
  must(coordinator.pause({"n", "last"}));
  submit(coordinator, "last", 2);
  if (ending == Ending::closed) must(coordinator.close());
}

// What lies behind the end that a successor names is read by nobody.
void count_bytes(SmallDirectory& directory) {
  for (const std::string& name : directory.files)
    directory.counted_bytes[name] = directory.disk.content(name).size();
  bool gap = false;
  for (std::size_t index = 1; index < directory.segments.size(); ++index) {
    const std::string& before = directory.segments[index - 1];
    const auto header = log::decode_segment_header(directory.disk.content(directory.segments[index]));
    must(header);
    const bool adjacent = log::segment_path(header->previous.first) == before;
    if (adjacent) directory.counted_bytes[before] = header->previous.end;
    gap = gap || !adjacent;
  }
  BATON_CHECK(gap);
}

void find_end(SmallDirectory& directory) {
  const auto control = log::read_control(directory.disk);
  BATON_CHECK(control && *control);
  const auto snapshots = engine::list_snapshots(directory.disk);
  BATON_CHECK(snapshots && snapshots->size() == 2);
  auto state = engine::read_snapshot(directory.disk, (*control)->uuid, snapshots->front());
  must(state);
  const log::Visitor visitor = [&](const log::Record& record) {
    const Status applied = engine::apply_record(*state, record);
    directory.digests[record.place.lsn] = state->digest;
    return applied;
  };
  const auto survey = log::survey_log(directory.disk, {.needed_from = state->last + 1, .visitor = visitor});
  BATON_CHECK(survey && survey->report.problem.kind == log::ProblemKind::none);
  directory.last = state->last;

  // Where the last batch begins.
  const Bytes newest = directory.disk.content(directory.segments.back());
  for (std::size_t at = log::kSegmentHeaderBytes; at < newest.size(); at += log::kBlockBytes) {
    const auto batch = log::decode_batch_header(ByteView(newest).subspan(at), (*control)->uuid);
    if (batch) directory.before_last_batch = batch->first - 1;
  }
  BATON_CHECK(directory.before_last_batch != 0);
}

}  // namespace

void load_directory(const std::string& path, sim::SimDisk& disk, std::vector<std::string>& files) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    const std::string name = std::filesystem::relative(entry.path(), path).string();
    if (entry.is_directory()) {
      must(disk.make_directory(name));
      continue;
    }
    if (name == "LOCK" || name == "wal/next.tmp") continue;
    files.push_back(name);
  }
  std::ranges::sort(files);
  for (const std::string& name : files) {
    std::ifstream file(path + "/" + name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    disk.set_content(name, bytes_of(text));
  }
}

void store_directory(const sim::SimDisk& disk, const std::vector<std::string>& files,
                     const std::string& path) {
  for (const std::string& name : files) {
    if (!disk.exists(name)) continue;
    const std::filesystem::path target = path + "/" + name;
    std::filesystem::create_directories(target.parent_path());
    const Bytes content = disk.content(name);
    std::ofstream(target, std::ios::binary) << text_of(content);
  }
}

std::unique_ptr<SmallDirectory> small_directory(Ending ending) {
  const TemporaryDirectory temporary;
  CoordinatorOptions options;
  options.log = kSweptLog;
  options.engine.digest_every = 16;
  {
    auto coordinator = Coordinator::open(temporary.path() + "/data", options);
    must(coordinator);
    live(**coordinator, ending);
  }
  auto directory = std::make_unique<SmallDirectory>();
  load_directory(temporary.path() + "/data", directory->disk, directory->files);
  for (const std::string& name : directory->files) {
    if (name.starts_with("wal/")) directory->segments.push_back(name);
    if (name.starts_with("snap/")) directory->snapshots.push_back(name);
  }
  count_bytes(*directory);
  find_end(*directory);
  return directory;
}

}  // namespace baton::crash
