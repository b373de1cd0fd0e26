// The bytes of checkpoints, and the arithmetic of slices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "checkpoint/checkpoint_validator.h"
#include "checkpoint/metadata.h"
#include "checkpoint/rectangle.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/save_plan.h"
#include "checkpoint/stream_copy.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// C7: flat ranges of every shape up to three dimensions of three
TEST(Rectangles, OfAFlatRangeAreItsElementsInOrder) {
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{3, 2}, Shape{1, 4}, Shape{2, 3, 3}, Shape{3, 1, 2}}) {
    const std::uint64_t all = *elements_of(shape);
    for (std::uint64_t begin = 0; begin <= all; ++begin) {
      for (std::uint64_t end = begin; end <= all; ++end) {
        std::vector<std::uint64_t> elements;
        const auto parts = rectangles_of(shape, begin, end);
        EXPECT_LE(parts.size(), shape.empty() ? 1 : 2 * shape.size() - 1);
        for (const Rectangle& part : parts) {
          for_each_run(part, whole(shape), part, [&](const checkpoint::Run& run) {
            for (std::uint64_t i = 0; i < run.count; ++i) elements.push_back(run.from + i);
          });
        }
        std::vector<std::uint64_t> expected;
        for (std::uint64_t i = begin; i < end; ++i) expected.push_back(i);
        ASSERT_EQ(elements, expected) << to_text(shape) << " from " << begin << " to " << end;
      }
    }
  }
}

// C7: every element goes from its place in one rectangle to its place in the other
TEST(Rectangles, RunsBringEveryElementToItsPlace) {
  std::mt19937_64 dice(3);
  const Shape shape{5, 4, 6};
  const auto random_rectangle = [&] {
    Rectangle rectangle = whole(shape);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      rectangle.offset[d] = dice() % shape[d];
      rectangle.shape[d] = dice() % (shape[d] - rectangle.offset[d]) + 1;
    }
    return rectangle;
  };
  const auto place = [](const Rectangle& in, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
    return ((x - in.offset[0]) * in.shape[1] + (y - in.offset[1])) * in.shape[2] + (z - in.offset[2]);
  };
  for (int round = 0; round < 300; ++round) {
    const Rectangle a = random_rectangle();
    const Rectangle b = random_rectangle();
    std::map<std::uint64_t, std::uint64_t> expected;
    for (std::uint64_t x = 0; x < shape[0]; ++x)
      for (std::uint64_t y = 0; y < shape[1]; ++y)
        for (std::uint64_t z = 0; z < shape[2]; ++z) {
          const auto is_in = [&](const Rectangle& r) {
            return x >= r.offset[0] && x < r.offset[0] + r.shape[0] && y >= r.offset[1] &&
                   y < r.offset[1] + r.shape[1] && z >= r.offset[2] && z < r.offset[2] + r.shape[2];
          };
          if (is_in(a) && is_in(b)) expected[place(a, x, y, z)] = place(b, x, y, z);
        }
    std::map<std::uint64_t, std::uint64_t> got;
    if (const auto common = intersection(a, b)) {
      for_each_run(*common, a, b, [&](const checkpoint::Run& run) {
        for (std::uint64_t i = 0; i < run.count; ++i) got[run.from + i] = run.to + i;
      });
    }
    ASSERT_EQ(got, expected);
  }
}

TEST(StreamCopy, BringsEveryByteWhereverItLies) {
  Bytes from(9000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7);
  for (const std::size_t bytes : {0, 1, 63, 4095, 4096, 4097, 8191}) {
    for (std::size_t shift = 0; shift < 64; shift += 7) {
      Bytes to(from.size() + 64, std::byte{0xEE});
      stream_copy(to.data() + shift, from.data() + shift / 3, bytes);
      EXPECT_EQ(std::memcmp(to.data() + shift, from.data() + shift / 3, bytes), 0) << bytes << " " << shift;
      EXPECT_EQ(to[shift + bytes], std::byte{0xEE});
      EXPECT_EQ(to[shift == 0 ? bytes : shift - 1], std::byte{0xEE});
    }
  }
}

TEST(Tensor, ShapesThatCannotBeCountedAreRefused) {
  const std::uint64_t large = std::uint64_t{1} << 33;
  EXPECT_FALSE(check(whole_tensor("w", Dtype::f64, {large, large})));
  EXPECT_FALSE(check(whole_tensor("w", Dtype::f64, {std::uint64_t{1} << 61})));
  EXPECT_TRUE(check(whole_tensor("w", Dtype::f64, {std::uint64_t{1} << 60})));
  EXPECT_FALSE(check(whole_tensor("", Dtype::f64, {1})));
  EXPECT_FALSE(check(whole_tensor("__metadata__", Dtype::f64, {1})));
  EXPECT_TRUE(check(whole_tensor("w", Dtype::u8, Shape(kDimensionsMax, 1))));
  EXPECT_FALSE(check(whole_tensor("w", Dtype::u8, Shape(kDimensionsMax + 1, 1))));
  EXPECT_FALSE(check({"w", Dtype::u8, {4}, {{UINT64_MAX}, {2}}}));
}

TEST(SavePlan, SurvivesTheWayAndNothingElseDoes) {
  const std::vector<TensorInfo> slices = model(1, 3);
  const Bytes bytes = encode(slices);
  EXPECT_EQ(*decode_slices(bytes), slices);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_slices(ByteView(bytes).first(length)));
}

std::string header_of(const SafetensorsPlan& plan) { return plan.header.substr(8); }

// C5
TEST(Safetensors, HeadersSayWhichSliceIsWhere) {
  const std::vector<TensorInfo> slices = model(1, 3);
  const auto plan = plan_safetensors(slices);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->header.size() % kSafetensorsAlignment, 0U);
  EXPECT_EQ(*safetensors_header_bytes(bytes_of(plan->header).first(8), plan->file_bytes),
            plan->header.size() - 8);
  const auto parsed = parse_safetensors(header_of(*plan), plan->file_bytes);
  ASSERT_TRUE(parsed) << said(parsed);
  EXPECT_EQ(*parsed, plan->tensors);
  for (const TensorMetadata& tensor : *parsed) EXPECT_EQ(tensor.begin % element_bytes(tensor.info.dtype), 0U);
}

// Whatever a file begins with, it is understood or refused.
TEST(Safetensors, DamagedHeadersAreRefusedOrMakeSense) {
  const auto plan =
      plan_safetensors({whole_tensor("w", Dtype::f32, {2, 2}), whole_tensor("b", Dtype::u8, {3})});
  std::string text = header_of(*plan);
  text.resize(text.find_last_not_of(' ') + 1);
  const std::uint64_t data = 19;
  for (std::size_t at = 0; at < text.size(); ++at) {
    EXPECT_FALSE(parse_safetensors(text.substr(0, at), 8 + at + data));
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = text;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      const auto parsed = parse_safetensors(bad, 8 + bad.size() + data);
      if (!parsed) continue;
      std::uint64_t bytes = 0;
      for (const TensorMetadata& tensor : *parsed) bytes += tensor.bytes;
      EXPECT_EQ(bytes, data);
    }
  }
}

TEST(Safetensors, WhatTheFormatForbidsIsRefused) {
  const auto refused = [](const std::string& header, std::uint64_t data) {
    return said(parse_safetensors(header, 8 + header.size() + data));
  };
  EXPECT_EQ(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2), "fine");
  EXPECT_THAT(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3),
              HasSubstr("end at byte"));
  EXPECT_THAT(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3),
              HasSubstr("does not begin"));
  EXPECT_THAT(refused(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,2]}})", 2),
              HasSubstr("its shape asks for"));
  EXPECT_THAT(refused(R"({"a":{"dtype":"U9","shape":[2],"data_offsets":[0,2]}})", 2), HasSubstr("U9"));
  EXPECT_THAT(refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,0]}})", 2), HasSubstr("in order"));
  EXPECT_THAT(refused(R"({"a":{"dtype":"U8","shape":[9223372036854775807,9],"data_offsets":[0,2]}})", 2),
              HasSubstr("counted"));
  EXPECT_FALSE(safetensors_header_bytes(bytes_of("\xff\xff\xff\xff\xff\xff\xff\xff"), 100));
  EXPECT_FALSE(safetensors_header_bytes(bytes_of("abc"), 3));
}

CheckpointMetadata small_metadata() {
  return {.id = {"step-0000000007", "a0001-0123456789abcdef"},
          .generation = 3,
          .created_ms = 1700000000000,
          .world_size = 2,
          .sharding = {"fsdp", "bf16", {{"zero", "3"}}},
          .training = {.step = 7, .epoch = 1, .learning_rate = 0.25, .optimizer = "adam"},
          .custom = {{"run", "blue"}},
          .objects = {{"seed", "[1,2]"}},
          .shards = {{.rank = 1,
                      .path = "step-0000000007/a0001-0123456789abcdef/r00001.safetensors",
                      .bytes = 4100,
                      .tensors = {{.info = {"w", Dtype::f32, {1}, {{0}, {1}}},
                                   .entry = "w",
                                   .begin = 4096,
                                   .bytes = 4,
                                   .fingerprint = {1, 2}}},
                      .block_sums = {0xdeadbeef}}}};
}

// The format, as it is written down in docs/checkpoints.md; a change of this text is a change of the format.
TEST(Manifest, IsWrittenAsTheFormatSays) {
  EXPECT_EQ(
      MetadataSerializer::serialize(small_metadata()),
      R"({"format":"baton checkpoint","version_major":1,"version_minor":0,"decision":"commit","prefix":"step-0000000007",)"
      R"("attempt":"a0001-0123456789abcdef","generation":3,"created_ms":1700000000000,"world_size":2,"sharding":{"strategy":)"
      R"("fsdp","shard_count":1,"precision":"bf16","details":{"zero":"3"}},"training":{"step":7,"epoch":1,"learning_rate":)"
      R"(2.5E-1,"optimizer":"adam"},"custom":{"run":"blue"},"objects":{"seed":[1,2]},"shards":[{"rank":1,"path":)"
      R"("step-0000000007/a0001-0123456789abcdef/r00001.safetensors","bytes":4100,"block_bytes":1048576,"block_crc32c":)"
      R"("deadbeef","tensors":[{"name":"w","dtype":"F32","shape":[1],"slice_offset":[0],"slice_shape":[1],"entry":"w",)"
      R"("begin":4096,"bytes":4,"xxh3":"00000000000000010000000000000002"}]}],"crc32c":"2f77f5c8"})"
      "\n");
}

TEST(Manifest, IsReadAsItWasWritten) {
  const CheckpointMetadata metadata = small_metadata();
  const auto parsed = MetadataSerializer::parse(MetadataSerializer::serialize(metadata), "it");
  ASSERT_TRUE(parsed) << said(parsed);
  EXPECT_EQ(*parsed, metadata);
  EXPECT_EQ(*MetadataSerializer::verdict(MetadataSerializer::serialize(metadata)), Verdict::commit);
  const std::string abort = MetadataSerializer::serialize_abort(metadata.id, "too slow");
  EXPECT_EQ(*MetadataSerializer::verdict(abort), Verdict::abort);
  EXPECT_THAT(said(MetadataSerializer::parse(abort, "it")), HasSubstr("WRONG_STATE"));
}

// What passes the checksum may still be of somebody who got it wrong.
TEST(Manifest, ThatMakesNoSenseIsRefused) {
  const auto refused = [](CheckpointMetadata metadata) {
    auto parsed = MetadataSerializer::parse(MetadataSerializer::serialize(metadata), "it");
    if (!parsed) return said(parsed);
    return said(CheckpointValidator::validate_or_fail(*parsed));
  };
  CheckpointMetadata metadata = small_metadata();
  EXPECT_EQ(refused(metadata), "fine");
  metadata.shards[0].tensors[0].begin = 4097;
  EXPECT_THAT(refused(metadata), HasSubstr("past the end"));
  metadata = small_metadata();
  metadata.shards[0].tensors.push_back(metadata.shards[0].tensors[0]);  // and again, a million times
  EXPECT_THAT(refused(metadata), HasSubstr("w overlaps another tensor in step-0000000007/a0001"));
  metadata = small_metadata();
  metadata.shards[0].block_sums.clear();
  EXPECT_THAT(refused(metadata), HasSubstr("not complete"));
  metadata = small_metadata();
  metadata.shards[0].path = "../../etc/passwd";
  EXPECT_THAT(refused(metadata), HasSubstr("does not lie in the store"));
  metadata = small_metadata();
  metadata.shards[0].path = "/etc/passwd";
  EXPECT_THAT(refused(metadata), HasSubstr("does not lie in the store"));
  metadata = small_metadata();
  metadata.shards[0].rank = 2;
  EXPECT_THAT(refused(metadata), HasSubstr("of rank 2 in a world of 2"));
  metadata = small_metadata();
  metadata.shards[0].tensors[0].info.global_shape = {3};
  EXPECT_THAT(refused(metadata), HasSubstr("2 of its 3 elements are in no slice"));
}

}  // namespace
}  // namespace baton::checkpoint
