// The manifest as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <exception>
#include <limits>

#include "base/hash.h"
#include "base/random_name.h"
#include "checkpoint/metadata.h"
#include "wire/sha256.h"

namespace baton::checkpoint {
namespace {

namespace json = boost::json;

constexpr std::string_view kFormat = "baton checkpoint";
constexpr std::string_view kSumKey = R"(,"crc32c":")";
constexpr std::string_view kEnd = "\"}\n";
constexpr std::size_t kSumDigits = 8;

// Every manifest ends with the checksum of all that stands before it, so that a reader knows before it
// believes a single field.
std::string sealed(const json::object& fields) {
  std::string text = json::serialize(fields);
  text.pop_back();
  const std::uint32_t sum = crc32c(bytes_of(text));
  return text + fmt::format("{}{:08x}{}", kSumKey, sum, kEnd);
}

Result<std::string_view> unsealed(std::string_view text) {
  constexpr std::size_t kTail = kSumKey.size() + kSumDigits + kEnd.size();
  if (text.size() < kTail) return failure(Errc::corrupt, "it is cut off");
  const std::string_view fields = text.substr(0, text.size() - kTail);
  const std::string expected = fmt::format("{}{:08x}{}", kSumKey, crc32c(bytes_of(fields)), kEnd);
  if (text.substr(fields.size()) != expected) return failure(Errc::corrupt, "its checksum does not fit");
  return fields;
}

json::array array_of(const Shape& shape) { return json::array(shape.begin(), shape.end()); }

json::object object_of(const std::map<std::string, std::string>& texts) {
  json::object object;
  for (const auto& [name, text] : texts) object[name] = text;
  return object;
}

json::object object_of(const TensorMetadata& tensor) {
  json::object object{{"name", tensor.info.name},
                      {"dtype", word(tensor.info.dtype)},
                      {"shape", array_of(tensor.info.global_shape)},
                      {"slice_offset", array_of(tensor.info.slice.offset)},
                      {"slice_shape", array_of(tensor.info.slice.shape)},
                      {"entry", tensor.entry},
                      {"begin", tensor.begin},
                      {"bytes", tensor.bytes},
                      {"xxh3", to_hex(tensor.fingerprint)}};
  if (!tensor.sha256.empty()) object["sha256"] = tensor.sha256;
  return object;
}

json::array array_of(const std::vector<ShardMetadata>& shards) {
  json::array array;
  for (const ShardMetadata& shard : shards) {
    json::array tensors;
    for (const TensorMetadata& tensor : shard.tensors) tensors.push_back(object_of(tensor));
    array.push_back(json::object{{"rank", shard.rank},
                                 {"path", shard.path},
                                 {"bytes", shard.bytes},
                                 {"block_bytes", kBlockBytes},
                                 {"block_crc32c", to_hex(shard.block_sums)},
                                 {"tensors", std::move(tensors)}});
  }
  return array;
}

// Reading. Whatever is missing or of another kind throws; the callers make one error of it.
struct Misfit : std::exception {
  explicit Misfit(std::string said) : text(std::move(said)) {}
  const char* what() const noexcept override { return text.c_str(); }
  std::string text;
};

std::uint64_t number(const json::object& from, std::string_view name) {
  return from.at(name).to_number<std::uint64_t>();
}
std::string text(const json::object& from, std::string_view name) {
  return std::string(std::string_view(from.at(name).as_string()));
}
Shape shape(const json::object& from, std::string_view name) {
  Shape shape;
  for (const json::value& extent : from.at(name).as_array())
    shape.push_back(extent.to_number<std::uint64_t>());
  return shape;
}
std::map<std::string, std::string> texts(const json::object& from, std::string_view name) {
  std::map<std::string, std::string> all;
  for (const auto& member : from.at(name).as_object())
    all.emplace(member.key(), std::string_view(member.value().as_string()));
  return all;
}

TensorMetadata tensor_of(const json::object& from) {
  TensorMetadata tensor;
  const auto dtype = dtype_of(text(from, "dtype"));
  if (!dtype) throw Misfit("no dtype is called " + text(from, "dtype"));
  tensor.info = {text(from, "name"),
                 *dtype,
                 shape(from, "shape"),
                 {shape(from, "slice_offset"), shape(from, "slice_shape")}};
  if (auto fits = check(tensor.info); !fits) throw Misfit(fits.error().message);
  tensor.entry = text(from, "entry");
  tensor.begin = number(from, "begin");
  tensor.bytes = number(from, "bytes");
  if (tensor.bytes != slice_bytes(tensor.info))
    throw Misfit(tensor.info.name + " has another size than its slice");
  const auto fingerprint = fingerprint_of_hex(text(from, "xxh3"));
  if (!fingerprint) throw Misfit(tensor.info.name + " has no fingerprint");
  tensor.fingerprint = *fingerprint;
  if (from.contains("sha256")) {
    tensor.sha256 = text(from, "sha256");
    if (!wire::is_sha256(tensor.sha256)) throw Misfit("the SHA-256 of " + tensor.info.name + " is none");
  }
  return tensor;
}

std::vector<ShardMetadata> shards_of(const json::array& from) {
  std::vector<ShardMetadata> shards;
  for (const json::value& value : from) {
    const json::object& fields = value.as_object();
    ShardMetadata shard{.rank = static_cast<Rank>(number(fields, "rank")),
                        .path = text(fields, "path"),
                        .bytes = number(fields, "bytes")};
    std::uint64_t free_from = 0;  // where the next tensor may begin
    for (const json::value& tensor : fields.at("tensors").as_array()) {
      shard.tensors.push_back(tensor_of(tensor.as_object()));
      const TensorMetadata& added = shard.tensors.back();
      if (added.begin > shard.bytes || added.bytes > shard.bytes - added.begin)
        throw Misfit(added.info.name + " reaches past the end of " + shard.path);
      // Otherwise a small manifest could ask for any amount of memory.
      if (added.bytes > 0 && added.begin < free_from)
        throw Misfit(added.info.name + " overlaps another tensor in " + shard.path);
      free_from = std::max(free_from, added.begin + added.bytes);
    }
    auto sums = sums_of_hex(text(fields, "block_crc32c"));
    if (number(fields, "block_bytes") != kBlockBytes || !sums ||
        sums->size() != (shard.bytes + kBlockBytes - 1) / kBlockBytes)
      throw Misfit("the checksums of " + shard.path + " are not complete");
    shard.block_sums = *std::move(sums);
    shards.push_back(std::move(shard));
  }
  return shards;
}

// JSON has no numbers for these.
json::value rate(double number) {
  if (std::isfinite(number)) return number;
  return json::string(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}
double rate_of(const json::value& value) {
  const json::string* word = value.if_string();
  if (word == nullptr) return value.to_number<double>();
  if (*word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (*word == "inf") return std::numeric_limits<double>::infinity();
  if (*word == "-inf") return -std::numeric_limits<double>::infinity();
  throw Misfit("the learning rate is no number");
}

CheckpointMetadata metadata_of(const json::object& from) {
  const json::object& sharding = from.at("sharding").as_object();
  const json::object& training = from.at("training").as_object();
  CheckpointMetadata metadata{
      .major = static_cast<std::uint32_t>(number(from, "version_major")),
      .minor = static_cast<std::uint32_t>(number(from, "version_minor")),
      .id = {text(from, "prefix"), text(from, "attempt")},
      .generation = number(from, "generation"),
      .created_ms = from.at("created_ms").to_number<std::int64_t>(),
      .world_size = static_cast<Rank>(number(from, "world_size")),
      .sharding = {text(sharding, "strategy"), text(sharding, "precision"), texts(sharding, "details")},
      .training = {.step = number(training, "step"),
                   .epoch = number(training, "epoch"),
                   .learning_rate = rate_of(training.at("learning_rate")),
                   .optimizer = text(training, "optimizer")},
      .custom = texts(from, "custom"),
      .shards = shards_of(from.at("shards").as_array()),
  };
  for (const auto& member : from.at("objects").as_object())
    metadata.objects.emplace(member.key(), json::serialize(member.value()));
  return metadata;
}

// Those around an object in the manifest: that of all fields, and that of all objects.
constexpr std::size_t kAroundObjects = 2;

json::parse_options as_deep_as(std::size_t depth) {
  json::parse_options options;
  options.max_depth = depth;
  return options;
}

json::object objects_of(const std::map<std::string, std::string>& objects) {
  json::object object;
  for (const auto& [name, value] : objects)
    object[name] = json::parse(value, {}, as_deep_as(kObjectDepthMax));
  return object;
}

Result<json::object> fields_of(std::string_view manifest) {
  auto fields = unsealed(manifest);
  if (!fields) return std::unexpected(fields.error());
  try {
    json::object object =
        json::parse(std::string(*fields) + "}", {}, as_deep_as(kObjectDepthMax + kAroundObjects)).as_object();
    if (text(object, "format") != kFormat) return failure(Errc::corrupt, "it is no manifest of a checkpoint");
    return object;
  } catch (const std::exception& misfit) {
    return failure(Errc::corrupt, misfit.what());
  }
}

bool is_text(std::string_view why) {
  json::error_code wrong;
  (void)json::parse(json::serialize(json::string(why)), wrong);
  return !wrong;
}

}  // namespace

std::string MetadataSerializer::serialize(const CheckpointMetadata& metadata) {
  return sealed({{"format", kFormat},
                 {"version_major", metadata.major},
                 {"version_minor", metadata.minor},
                 {"decision", "commit"},
                 {"prefix", metadata.id.prefix},
                 {"attempt", metadata.id.attempt},
                 {"generation", metadata.generation},
                 {"created_ms", metadata.created_ms},
                 {"world_size", metadata.world_size},
                 {"sharding", json::object{{"strategy", metadata.sharding.strategy},
                                           {"shard_count", metadata.shards.size()},
                                           {"precision", metadata.sharding.precision},
                                           {"details", object_of(metadata.sharding.details)}}},
                 {"training", json::object{{"step", metadata.training.step},
                                           {"epoch", metadata.training.epoch},
                                           {"learning_rate", rate(metadata.training.learning_rate)},
                                           {"optimizer", metadata.training.optimizer}}},
                 {"custom", object_of(metadata.custom)},
                 {"objects", objects_of(metadata.objects)},
                 {"shards", array_of(metadata.shards)}});
}

std::string MetadataSerializer::serialize_abort(const CheckpointId& id, std::string_view why) {
  return sealed({{"format", kFormat},
                 {"version_major", kFormatMajor},
                 {"version_minor", kFormatMinor},
                 {"decision", "abort"},
                 {"prefix", id.prefix},
                 {"attempt", id.attempt},
                 {"why", is_text(why) ? why : std::string_view("for a reason that is no text")},
                 {"by", random_name()}});
}

Result<Verdict> MetadataSerializer::verdict(std::string_view manifest) {
  auto fields = fields_of(manifest);
  if (!fields) return std::unexpected(fields.error());
  const json::value* decision = fields->if_contains("decision");
  const bool is_abort = decision != nullptr && *decision == "abort";
  return is_abort ? Verdict::abort : Verdict::commit;
}

Result<CheckpointMetadata> MetadataSerializer::parse(std::string_view manifest, const std::string& where) {
  auto fields = fields_of(manifest);
  if (!fields)
    return failure(fields.error().code, fmt::format("{} is damaged: {}", where, fields.error().message));
  try {
    if (const auto major = number(*fields, "version_major"); major > kFormatMajor) {
      return failure(Errc::unsupported_version,
                     fmt::format("{} is in format {}, and this baton knows formats up to {}; use a newer one",
                                 where, major, kFormatMajor));
    }
    if (text(*fields, "decision") != "commit")
      return failure(Errc::wrong_state, fmt::format("{} says that this attempt was given up", where));
    return metadata_of(*fields);
  } catch (const std::exception& misfit) {
    return failure(Errc::corrupt, fmt::format("{} makes no sense: {}", where, misfit.what()));
  }
}

Status MetadataSerializer::check_object(std::string_view text) {
  json::error_code wrong;
  (void)json::parse(text, wrong, {}, as_deep_as(kObjectDepthMax));
  if (!wrong) return {};
  if (wrong == json::error::too_deep)
    return failure(Errc::invalid_request, fmt::format("has more than {} arrays and objects of JSON in each "
                                                      "other, which is the most",
                                                      kObjectDepthMax));
  return failure(Errc::invalid_request, "is not JSON: " + wrong.message());
}

std::string MetadataSerializer::serialize(const RankReport& report) {
  return json::serialize(
      json::object{{"shards", array_of(report.shards)}, {"objects", object_of(report.objects)}});
}

Result<RankReport> MetadataSerializer::parse_report(std::string_view report) {
  try {
    const json::value value = json::parse(report);
    const json::object& fields = value.as_object();
    return RankReport{shards_of(fields.at("shards").as_array()), texts(fields, "objects")};
  } catch (const std::exception& misfit) {
    return failure(Errc::corrupt, fmt::format("the report of a rank makes no sense: {}", misfit.what()));
  }
}

}  // namespace baton::checkpoint
