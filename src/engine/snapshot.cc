#include "engine/snapshot.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "base/hash.h"
#include "core/state_codec.h"

namespace baton::engine {
namespace {

//  0 magic "BATONSNP"   8 u16 major  10 u16 minor  12 zeros   16 uuid   32 u64 lsn   40 u64 digest
// 48 zeros   60 u32 crc32c of bytes 0 to 59
constexpr std::size_t kHeaderBytes = 64;
constexpr char kMagic[] = "BATONSNP";
constexpr std::uint16_t kMajor = 1;
constexpr std::uint16_t kMinor = 0;
constexpr std::size_t kPieceBytesMax = std::size_t{64} << 20;
// A disk that has hundreds of megabytes to bring out at once lets the log's flushes wait behind them.
constexpr std::uint64_t kSyncedEvery = std::uint64_t{4} << 20;
constexpr const char* kUnfinished = "snap/unfinished.tmp";

Bytes header_of(const log::Uuid& uuid, const core::State& state) {
  Bytes bytes(kHeaderBytes);
  std::memcpy(bytes.data(), kMagic, 8);
  store(bytes.data() + 8, kMajor);
  store(bytes.data() + 10, kMinor);
  std::memcpy(bytes.data() + 16, uuid.bytes.data(), uuid.bytes.size());
  store(bytes.data() + 32, state.last);
  store(bytes.data() + 40, state.digest);
  store(bytes.data() + 60, crc32c(ByteView(bytes).first(60)));
  return bytes;
}

// Covers the piece's number too, so that pieces cannot change places.
std::uint32_t piece_crc(std::uint64_t number, ByteView piece) {
  std::byte prefix[8];
  store(prefix, number);
  const std::uint32_t first = crc32c(prefix);
  return crc32c(piece) ^ ((first << 7) | (first >> 25));
}

std::unexpected<Error> damaged(core::Lsn lsn, std::string_view what) {
  return failure(Errc::corrupt, fmt::format("{}: {}", snapshot_path(lsn), what));
}

Result<std::uint64_t> write_content(log::File& file, const log::Uuid& uuid, const core::State& state,
                                    const MayGoOn& may_go_on) {
  if (auto done = file.write(0, header_of(uuid, state)); !done) return std::unexpected(done.error());
  std::uint64_t offset = kHeaderBytes;
  std::uint64_t synced = 0;
  core::StateWriter writer(state);
  Bytes piece;
  for (std::uint64_t number = 0;; ++number) {
    piece.assign(8, std::byte{0});
    const bool more = writer.next(piece);
    const ByteView content = ByteView(piece).subspan(8);
    store(piece.data(), static_cast<std::uint32_t>(content.size()));
    store(piece.data() + 4, piece_crc(number, content));
    if (may_go_on) {
      if (auto may = may_go_on(offset, piece.size()); !may) return std::unexpected(may.error());
    }
    if (auto done = file.write(offset, piece); !done) return std::unexpected(done.error());
    offset += piece.size();
    if (more && offset - synced < kSyncedEvery) continue;
    if (auto done = file.sync(); !done) return std::unexpected(done.error());
    if (!more) return offset;
    synced = offset;
  }
}

Status check_header(ByteView bytes, const log::Uuid& uuid, core::Lsn lsn) {
  if (std::memcmp(bytes.data(), kMagic, 8) != 0 ||
      load<std::uint32_t>(bytes.data() + 60) != crc32c(bytes.first(60))) {
    return damaged(lsn, "the header is damaged");
  }
  if (load<std::uint16_t>(bytes.data() + 8) != kMajor) {
    return failure(Errc::unsupported_version,
                   snapshot_path(lsn) + " was written by a newer version of baton");
  }
  if (std::memcmp(bytes.data() + 16, uuid.bytes.data(), uuid.bytes.size()) != 0) {
    return damaged(lsn, "it belongs to another data directory");
  }
  if (load<std::uint64_t>(bytes.data() + 32) != lsn) return damaged(lsn, "its name is not its content's");
  return {};
}

}  // namespace

std::string snapshot_path(core::Lsn lsn) { return fmt::format("snap/{:016x}.snap", lsn); }

Result<std::uint64_t> write_snapshot(log::Disk& disk, const log::Uuid& uuid, const core::State& state,
                                     const MayGoOn& may_go_on) {
  if (auto made = disk.make_directory("snap"); !made) return std::unexpected(made.error());
  if (auto removed = disk.remove(kUnfinished); !removed && removed.error().code != Errc::not_found)
    return std::unexpected(removed.error());
  auto file = disk.create(kUnfinished, 0);
  if (!file) return std::unexpected(file.error());
  auto written = write_content(**file, uuid, state, may_go_on);
  if (!written) {
    (void)disk.remove(kUnfinished);  // it may be what filled the disk
    return written;
  }
  Status done = disk.rename(kUnfinished, snapshot_path(state.last));
  if (done) done = disk.sync_directory("snap");
  if (done) done = disk.sync_directory("");
  if (!done) return std::unexpected(done.error());
  return written;
}

Result<std::uint64_t> snapshot_bytes(log::Disk& disk, core::Lsn lsn) {
  auto file = disk.open(snapshot_path(lsn));
  if (!file) return std::unexpected(file.error());
  return (*file)->size();
}

Result<core::State> read_snapshot(log::Disk& disk, const log::Uuid& uuid, core::Lsn lsn) {
  auto file = disk.open(snapshot_path(lsn));
  if (!file) return std::unexpected(file.error());
  Bytes bytes(kHeaderBytes);
  std::uint64_t offset = 0;
  // All of `count` bytes, or it is damaged.
  const auto take = [&](std::size_t count) -> Status {
    bytes.resize(count);
    auto got = (*file)->read(offset, bytes);
    if (!got) return std::unexpected(got.error());
    if (*got != count) return damaged(lsn, "it ends too early");
    offset += count;
    return {};
  };
  if (auto got = take(kHeaderBytes); !got) return std::unexpected(got.error());
  if (auto good = check_header(bytes, uuid, lsn); !good) return std::unexpected(good.error());
  core::StateReader reader;
  for (std::uint64_t number = 0;; ++number) {
    if (auto got = take(8); !got) return std::unexpected(got.error());
    const auto length = load<std::uint32_t>(bytes.data());
    const auto crc = load<std::uint32_t>(bytes.data() + 4);
    if (length > kPieceBytesMax) return damaged(lsn, "a piece has no plausible length");
    if (auto got = take(length); !got) return std::unexpected(got.error());
    if (crc != piece_crc(number, bytes)) return damaged(lsn, "a piece is damaged");
    if (length == 0) break;
    if (auto taken = reader.take(bytes); !taken) return damaged(lsn, taken.error().message);
  }
  auto state = reader.finish();
  if (!state) return damaged(lsn, state.error().message);
  if (state->last != lsn) return damaged(lsn, "its name is not its content's");
  return state;
}

Result<std::vector<core::Lsn>> list_snapshots(log::Disk& disk) {
  auto names = disk.list("snap");
  if (!names && names.error().code == Errc::not_found) return std::vector<core::Lsn>{};
  if (!names) return std::unexpected(names.error());
  std::vector<core::Lsn> found;
  for (const std::string& name : *names) {
    core::Lsn lsn = 0;
    std::from_chars(name.data(), name.data() + name.size(), lsn, 16);
    if ("snap/" + name == snapshot_path(lsn)) found.push_back(lsn);
  }
  return found;  // names sort as numbers do
}

Status remove_snapshot(log::Disk& disk, core::Lsn lsn) { return disk.remove(snapshot_path(lsn)); }

}  // namespace baton::engine
