// Any bytes as a data directory's only segment: surveyed without a crash, and never taken for intact unless
// every record in it can be handed out.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "log/control.h"
#include "log/survey.h"
#include "tests/sim/sim_disk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  if (size > (1 << 20)) return 0;
  sim::SimDisk disk;
  BATON_CHECK(disk.make_directory("wal"));
  BATON_CHECK(disk.create("wal/0000000000000001.seg", 0));
  disk.set_content("wal/0000000000000001.seg", {reinterpret_cast<const std::byte*>(data), size});
  log::Uuid uuid;
  if (size >= 40)
    std::memcpy(uuid.bytes.data(), data + 24, uuid.bytes.size());  // whatever the segment says it is
  BATON_CHECK(log::replace_control(disk, {.uuid = uuid, .durable = 0}));
  std::uint64_t records = 0;
  const auto count = [&](const log::Record&) -> Status {
    ++records;
    return {};
  };
  const auto survey = log::survey_log(disk, {.visitor = count});
  if (survey && survey->report.problem.kind == log::ProblemKind::none)
    BATON_CHECK(records == survey->report.records);
  return 0;
}
