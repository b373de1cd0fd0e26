#include "tests/sim/damage_check.h"

#include <fmt/format.h>

#include "base/check.h"
#include "log/recovery.h"

namespace baton::sim {
namespace {

using log::kSectorBytes;
using log::Lsn;

void flush(log::LogWriter& writer) {
  auto flush = writer.begin_flush();
  BATON_CHECK(flush && writer.perform(*flush));
  writer.finish(std::move(*flush));
}

// Counts the cases and judges each: refused, or everything from before is there.
class Judge {
 public:
  explicit Judge(const SmallLog& original) : original_(original) {}

  void judge(SimDisk& damaged, Lsn last_at_least, const std::string& damage) {
    if (check_.violation) return;
    ++check_.cases;
    Lsn next = 1;
    bool differs = false;
    auto opened = log::open_log(damaged, {.log = kSmallLogOptions}, [&](const log::Record& record) -> Status {
      differs = differs || record.place.lsn != next || next > original_.bodies.size() ||
                !std::ranges::equal(record.body, original_.bodies[next - 1]);
      ++next;
      return {};
    });
    if (!opened) {
      ++check_.refused;
      const Errc code = opened.error().code;
      if (code != Errc::corrupt && code != Errc::unsupported_version) {
        check_.violation = fmt::format("{}: refused as {}", damage, opened.error().message);
      }
    } else if (differs) {
      check_.violation = damage + ": a record differs";
    } else if (next <= last_at_least) {
      check_.violation =
          fmt::format("{}: the log silently ends at {} of {}", damage, next - 1, last_at_least);
    }
  }

  DamageCheck result() { return std::move(check_); }

 private:
  const SmallLog& original_;
  DamageCheck check_;
};

std::vector<std::string> all_files(const SmallLog& log) {
  std::vector<std::string> files = log.segments;
  files.push_back("CONTROL");
  return files;
}

}  // namespace

SmallLog small_log(Ending ending) {
  SmallLog log;
  auto opened =
      log::open_log(log.disk, {.log = kSmallLogOptions}, [](const log::Record&) { return Status(); });
  BATON_CHECK(opened.has_value());
  log::LogWriter& writer = *opened->writer;
  SplitMix64 random{42};
  const auto append = [&](std::size_t length) {
    Bytes body(length);
    for (std::byte& byte : body) byte = static_cast<std::byte>(random.next() | 1);
    writer.append(3, Instant{static_cast<std::int64_t>(log.bodies.size())}, body);
    log.bodies.push_back(std::move(body));
  };
  for (int batch = 0; batch < 8; ++batch) {
    append(100);
    append(30);
    flush(writer);
  }
  log.before_last_batch = writer.last();
  append(300);
  append(1500);
  append(200);
  flush(writer);
  for (const auto& segment : writer.segments().list())
    log.segments.push_back(log::segment_path(segment.first));
  BATON_CHECK(log.segments.size() == 3);
  if (ending == Ending::closed) BATON_CHECK(writer.close().has_value());
  return log;
}

DamageCheck check_flipped_bits(Ending ending) {
  const SmallLog log = small_log(ending);
  Judge judge(log);
  for (const std::string& path : all_files(log)) {
    const Bytes content = log.disk.content(path);
    for (std::size_t offset = 0; offset < content.size(); ++offset) {
      const bool unused = content[offset] == std::byte{0};
      for (unsigned bit = 0; bit < 8; ++bit) {
        if (unused && bit != offset % 8) continue;  // one bit of each zero is enough
        SimDisk damaged(log.disk);
        damaged.flip_bit(path, offset, bit);
        judge.judge(damaged, log.bodies.size(), fmt::format("{} byte {} bit {} flipped", path, offset, bit));
      }
    }
  }
  return judge.result();
}

DamageCheck check_cut_files(Ending ending) {
  const SmallLog log = small_log(ending);
  Judge judge(log);
  for (const std::string& path : all_files(log)) {
    const Bytes content = log.disk.content(path);
    for (std::size_t length = 0; length < content.size(); ++length) {
      SimDisk damaged(log.disk);
      damaged.set_content(path, ByteView(content).first(length));
      judge.judge(damaged, log.bodies.size(), fmt::format("{} cut to {} bytes", path, length));
    }
  }
  return judge.result();
}

DamageCheck check_zeroed_sectors(Ending ending) {
  const SmallLog log = small_log(ending);
  const Lsn last = log.bodies.size();
  const Lsn least = ending == Ending::closed ? last : log.before_last_batch;
  Judge judge(log);
  for (const std::string& path : log.segments) {
    const Bytes content = log.disk.content(path);
    for (std::size_t length : {kSectorBytes, 2 * kSectorBytes, log::kBlockBytes}) {
      for (std::size_t offset = 0; offset + length <= content.size(); offset += kSectorBytes) {
        Bytes changed = content;
        std::ranges::fill(std::span(changed).subspan(offset, length), std::byte{0});
        SimDisk damaged(log.disk);
        damaged.set_content(path, changed);
        judge.judge(damaged, path == log.segments.back() ? least : last,
                    fmt::format("{} zeros at {} of {}", length, offset, path));
      }
    }
  }
  return judge.result();
}

DamageCheck check_foreign_epoch() {
  const SmallLog log = small_log(Ending::killed);
  const std::string& path = log.segments.front();
  Bytes content = log.disk.content(path);
  const std::uint64_t offset = log::kSegmentHeaderBytes;
  const log::Uuid uuid;
  auto header = *log::decode_batch_header(ByteView(content).subspan(offset), uuid);
  header.epoch += 1;
  header.chain = 0;
  // The whole log is this one batch, so that no link gives the change away.
  log::seal_batch(std::span(content).subspan(offset), header, uuid);
  std::ranges::fill(std::span(content).subspan(offset + log::kBlockBytes), std::byte{0});
  SimDisk damaged(log.disk);
  damaged.set_content(path, content);
  for (std::size_t index = 1; index < log.segments.size(); ++index) {
    BATON_CHECK(damaged.remove(log.segments[index]).has_value());
  }
  Judge judge(log);
  judge.judge(damaged, log.bodies.size(), "a batch of another epoch");
  return judge.result();
}

}  // namespace baton::sim
