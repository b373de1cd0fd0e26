#include "checkpoint/save_exchange.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/save_plan.h"

namespace baton::checkpoint {
namespace {

constexpr std::string_view kReportEnd = ".report";

Status put(Storage& storage, const std::string& path, ByteView bytes) {
  const auto is_there = storage.put_if_absent(path, bytes);
  if (!is_there) return std::unexpected(is_there.error());
  return {};
}

}  // namespace

std::size_t brought_max(std::size_t bringers, std::size_t hearers) {
  return std::min(kBroughtMax, kHeardBytesMax / 2 / bringers / hearers);
}

Bytes encode(const Announcement& announcement, Rank world_size) {
  const Bytes slices = encode(announcement.slices);
  Bytes bytes;
  ByteWriter to(bytes);
  to.text(announcement.attempt);
  to.text(announcement.base.prefix);
  to.text(announcement.base.attempt);
  if (slices.size() <= brought_max(world_size, world_size)) to.raw(slices);
  return bytes;
}

Result<Announcement> decode_announcement(ByteView bytes) {
  ByteReader from(bytes);
  Announcement announcement{.attempt = std::string(from.text()),
                            .base = {std::string(from.text()), std::string(from.text())},
                            .slices = {}};
  announcement.are_aside = from.finished();
  if (announcement.are_aside) return announcement;
  auto slices = decode_slices(from.rest());
  if (!slices) return std::unexpected(slices.error());
  announcement.slices = *std::move(slices);
  return announcement;
}

std::string slices_path(const CheckpointId& id, Rank rank) {
  return fmt::format("{}/r{:05}.slices", directory_of(id), rank);
}

Status put_slices(Storage& storage, const std::string& path, const std::vector<TensorInfo>& slices) {
  return put(storage, path, encode(slices));
}

Result<std::vector<TensorInfo>> get_slices(Storage& storage, const std::string& path) {
  const auto bytes = storage.get(path);
  if (!bytes) return std::unexpected(bytes.error());
  return decode_slices(*bytes);
}

Result<std::string> to_bring(const Collective& collective, Storage& storage, const RankReport& report,
                             const CheckpointId& id) {
  std::string text = MetadataSerializer::serialize(report);
  if (text.size() <= brought_max(collective.world_size(), 1)) return text;
  const std::string path = fmt::format("{}/r{:05}{}", directory_of(id), collective.rank(), kReportEnd);
  if (auto there = put(storage, path, bytes_of(text)); !there) return std::unexpected(there.error());
  return path;
}

Result<RankReport> brought_report(Storage& storage, std::string_view brought) {
  if (!brought.ends_with(kReportEnd)) return MetadataSerializer::parse_report(brought);
  const std::string path(brought);
  const auto text = storage.get(path);
  if (!text) return std::unexpected(text.error());
  (void)storage.remove(path);  // what is left of it goes with the attempt
  return MetadataSerializer::parse_report(text_of(*text));
}

}  // namespace baton::checkpoint
