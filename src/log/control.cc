#include "log/control.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"

namespace baton::log {
namespace {

constexpr std::uint64_t kMagic = 0x4c54434e4f544142;  // "BATONCTL"
constexpr std::size_t kControlBytes = 48;
constexpr const char* kPath = "CONTROL";
constexpr const char* kAside = "CONTROL.tmp";

//  0 magic   8 u16 format major  10 u16 minor  12 u32 clean, 0 or 1   16 uuid   32 u64 durable lsn
// 40 u32 zero   44 u32 crc32c of bytes 0 to 43
Bytes encode(const Control& control) {
  Bytes bytes;
  ByteWriter writer(bytes);
  writer.fixed(kMagic);
  writer.fixed(kFormatMajor);
  writer.fixed(kFormatMinor);
  writer.fixed(std::uint32_t{control.clean});
  writer.raw(control.uuid.bytes);
  writer.fixed(control.durable);
  writer.fixed(std::uint32_t{0});
  writer.fixed(crc32c(bytes));
  return bytes;
}

Result<std::optional<Control>> decode(ByteView bytes) {
  if (bytes.size() != kControlBytes ||
      load<std::uint32_t>(bytes.data() + kControlBytes - 4) != crc32c(bytes.first(kControlBytes - 4)) ||
      load<std::uint64_t>(bytes.data()) != kMagic) {
    return failure(
        Errc::corrupt,
        "CONTROL is damaged. It is always replaced whole, so a crash cannot explain this; restore the "
        "data directory from a backup");
  }
  ByteReader reader(bytes.subspan(8));
  const auto major = reader.fixed<std::uint16_t>();
  if (major != kFormatMajor) {
    return failure(
        Errc::unsupported_version,
        fmt::format("CONTROL is in log format {}, this baton reads format {}; use the version of baton "
                    "that wrote it, or a newer one",
                    major, kFormatMajor));
  }
  reader.fixed<std::uint16_t>();
  Control control;
  control.clean = reader.fixed<std::uint32_t>() != 0;
  std::ranges::copy(reader.raw(16), control.uuid.bytes.begin());
  control.durable = reader.fixed<std::uint64_t>();
  return control;
}

}  // namespace

Result<std::optional<Control>> read_control(Disk& disk) {
  auto file = disk.open(kPath);
  if (!file && file.error().code == Errc::not_found) return std::optional<Control>();
  if (!file) return std::unexpected(file.error());
  Bytes bytes(kControlBytes + 1);
  auto got = (*file)->read(0, bytes);
  if (!got) return std::unexpected(got.error());
  return decode(ByteView(bytes).first(*got));
}

Status replace_control(Disk& disk, const Control& control) {
  if (auto removed = disk.remove(kAside); !removed && removed.error().code != Errc::not_found) return removed;
  const Bytes bytes = encode(control);
  auto file = disk.create(kAside, bytes.size());
  if (!file) return std::unexpected(file.error());
  Status done = (*file)->write(0, bytes);
  if (done) done = (*file)->sync();
  if (done) done = disk.rename(kAside, kPath);
  if (done) done = disk.sync_directory("");
  return done;
}

}  // namespace baton::log
