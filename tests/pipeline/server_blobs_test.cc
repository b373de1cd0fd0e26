// Blobs at a server: bytes of a task that are too many for the log.
#include "pipeline/server_blobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <latch>
#include <thread>
#include <utility>

#include "pipeline/builder.h"
#include "pipeline/carried.h"
#include "tests/proxy.h"
#include "tests/served.h"
#include "tests/small_disk.h"
#include "tests/temporary_directory.h"
#include "wire/sha256.h"

namespace baton::pipeline {
namespace {

using ::testing::HasSubstr;

client::ClientOptions at(const Served& server, const std::string& token = {}) {
  client::ClientOptions options;
  options.addresses = {server.address()};
  options.token = token;
  return options;
}
void submit(const Served& server, const std::string& key, const std::string& token = {}) {
  client::Client client(at(server, token));
  ASSERT_TRUE(client.submit({.queue = "runs", .payload = "x", .key = key, .options = {}}));
}
Result<client::HttpReply> put(const Served& server, const std::string& target, const std::string& body) {
  return client::call_http({"127.0.0.1", std::to_string(server.http_port())}, at(server),
                           {.method = "PUT",
                            .target = target,
                            .body_bytes = body.size(),
                            .body = bytes_of_text(body),
                            .wanted_body = {}},
                           {});
}
std::string name_of(const std::string& text) { return measure(bytes_of_text(text))->hash; }

TEST(ABlobAtAServer, IsThereOnceItIsAcknowledged) {  // P15
  Served server(BATON_PROGRAM);
  submit(server, "run");
  const std::string text(5 << 20, 'b');
  BlobRef blob;
  {
    ServerBlobs store(at(server), "run");
    EXPECT_FALSE(*store.has({name_of(text), text.size()}, {}));
    const auto stored = store.put(bytes_of_text(text), {});
    ASSERT_TRUE(stored) << stored.error().message;
    blob = *stored;
  }
  server.kill();
  server.start();
  ServerBlobs store(at(server), "run");
  EXPECT_TRUE(*store.has(blob, {}));
  EXPECT_EQ(fetch_text(store, blob, {}).value(), text);
  const BlobRef empty = *store.put(bytes_of_text(""), {});
  EXPECT_EQ(fetch_text(store, empty, {}).value(), "");
}

TEST(ABlobAtAServer, IsWhatItsNameSays) {  // P15
  Served server(BATON_PROGRAM);
  submit(server, "run");
  const auto wrong = put(server, "/v1/blobs/" + name_of("one") + "?task=key:run", "two");
  ASSERT_TRUE(wrong) << wrong.error().message;
  EXPECT_EQ(wrong->status, 400U);
  EXPECT_THAT(wrong->body, HasSubstr("not those that the name"));
  ServerBlobs store(at(server), "run");
  EXPECT_EQ(fetch_text(store, {name_of("one"), 3}, {}).error().code, Errc::not_found);
  EXPECT_EQ(put(server, "/v1/blobs/../secrets?task=key:run", "x")->status, 400U);
}

TEST(ABlobAtAServer, IsRepairedByWhoeverPutsItAgain) {  // P15
  Served server(BATON_PROGRAM);
  submit(server, "run");
  ServerBlobs store(at(server), "run");
  const BlobRef blob = *store.put(bytes_of_text("one"), {});
  for (const auto& entry : std::filesystem::recursive_directory_iterator(server.directory() + "/blobs")) {
    if (entry.is_regular_file()) std::ofstream(entry.path()) << "two";
  }
  ASSERT_EQ(fetch_text(store, blob, {}).error().code, Errc::corrupt);
  ASSERT_TRUE(store.put(bytes_of_text("one"), {}));
  EXPECT_EQ(fetch_text(store, blob, {}).value(), "one");
}

TEST(ABlobAtAServer, IsAskedOfTheServerThatAnswers) {  // P15
  Served server(BATON_PROGRAM);
  submit(server, "run");
  client::ClientOptions options = at(server);
  options.addresses.insert(options.addresses.begin(), "127.0.0.2:" + std::to_string(server.port()));
  ServerBlobs store(options, "run", milliseconds(1));
  const auto blob = store.put(bytes_of_text("one"), {});
  ASSERT_TRUE(blob) << blob.error().message;
  EXPECT_EQ(fetch_text(store, *blob, {}).value(), "one");
}

TEST(ABlobAtAServer, IsNotWaitedForOnceNobodyWantsIt) {  // P7 P15
  Served server(BATON_PROGRAM);
  submit(server, "run");
  const std::string text(5 << 20, 'b');
  std::stop_source stop;
  ServerBlobs store(at(server), "run");
  const BlobRef blob = *store.put(bytes_of_text(text), {});
  std::size_t got = 0;
  const auto poured = store.pour(
      blob,
      [&](std::string_view bytes) -> Status {
        got += bytes.size();
        stop.request_stop();
        return {};
      },
      stop.get_token());
  EXPECT_EQ(poured.error().code, Errc::closed);
  EXPECT_LT(got, text.size());
  int pieces = 0;
  const ByteSource source = [&](const ByteSink& into) -> Status {
    Status taken;
    for (int i = 0; taken && i < 3; ++i, ++pieces) taken = into("x");
    return taken;
  };
  EXPECT_EQ(store.put(source, stop.get_token()).error().code, Errc::closed);
  EXPECT_EQ(pieces, 1) << "nor is it looked at";
  client::ClientOptions nobody;
  nobody.addresses = {"127.0.0.1:1"};
  nobody.deadline = seconds(2);
  EXPECT_EQ(ServerBlobs(nobody, "run").has(blob, stop.get_token()).error().code, Errc::closed);
}

TEST(ABlobAtAServer, BelongsToATaskAndGoesWithIt) {
  Served server(BATON_PROGRAM);
  EXPECT_EQ(put(server, "/v1/blobs/" + name_of("one") + "?task=key:none", "one")->status, 404U);
  submit(server, "run");
  submit(server, "other");
  ServerBlobs store(at(server), "run"), other(at(server), "other");
  const BlobRef blob = *store.put(bytes_of_text("one"), {});
  ASSERT_TRUE(other.put(bytes_of_text("one"), {}));
  client::Client client(at(server));
  ASSERT_TRUE(client.cancel("key:run"));
  ASSERT_TRUE(client.purge("runs"));
  EXPECT_EQ(fetch_text(store, blob, {}).error().code, Errc::not_found);
  ASSERT_TRUE(server.stop());
  server.start();
  submit(server, "run");
  EXPECT_TRUE(eventually([&] {
    return std::distance(std::filesystem::directory_iterator(server.directory() + "/blobs"), {}) == 1;
  })) << "what belongs to nobody is still there";
  ServerBlobs after(at(server), "other");
  EXPECT_EQ(fetch_text(after, blob, {}).value(), "one");
}

TEST(ABlobAtAServer, IsForThoseWhoMay) {
  TemporaryDirectory directory;
  const auto hash = [](const std::string& token) {
    wire::Sha256 sum;
    sum.add(token);
    return sum.hex();
  };
  std::ofstream(directory.path() + "/tokens")
      << "works " << hash("work-token") << " default=work,submit\nlooks " << hash("look-token")
      << " default=query\n"
      << "other " << hash("other-token") << " elsewhere=all\n";
  Served server(BATON_PROGRAM, {"--tokens", directory.path() + "/tokens"});
  submit(server, "run", "work-token");
  ServerBlobs works(at(server, "work-token"), "run"), looks(at(server, "look-token"), "run"),
      other(at(server, "other-token"), "run");
  const BlobRef blob = *works.put(bytes_of_text("ours"), {});
  EXPECT_EQ(fetch_text(looks, blob, {}).value(), "ours");
  EXPECT_FALSE(looks.put(bytes_of_text("theirs"), {}));
  EXPECT_FALSE(fetch_text(other, blob, {}));
}

TEST(ABlobAtAServer, IsNotLongerThanAllowed) {
  Served server(BATON_PROGRAM, {"--blob-bytes-max", "1000"});
  submit(server, "run");
  ServerBlobs store(at(server), "run");
  EXPECT_TRUE(store.put(bytes_of_text(std::string(1000, 'x')), {}));
  const auto refused = store.put(bytes_of_text(std::string(1001, 'x')), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::too_large);
  EXPECT_THAT(refused.error().message, HasSubstr("1000 bytes at most"));
}

// To whoever wants to know how often it has waited in vain.
class Tried : public ServerBlobs {
 public:
  using ServerBlobs::ServerBlobs;
  Result<BlobRef> put(const ByteSource& from, const std::stop_token& stop) override {
    auto blob = ServerBlobs::put(from, stop);
    if (!blob && once_in_vain) std::exchange(once_in_vain, nullptr)();
    return blob;
  }
  std::function<void()> once_in_vain;
};

// Others may take very long, and it is made already.
TEST(ABlobAtAServer, IsWaitedForByModulesAloneWhileTheServerHasToDoWithOthers) {  // P15
  Served server(BATON_PROGRAM, {"--blob-transfers-max", "1"});
  submit(server, "run");
  std::latch has_begun(1), is_enough(1);
  const ByteSource slowly = [&](const ByteSink& into) {
    has_begun.count_down();
    is_enough.wait();
    return into("theirs");
  };
  const std::jthread other([&] {
    const auto done = client::call_http({"127.0.0.1", std::to_string(server.http_port())}, at(server),
                                        {.method = "PUT",
                                         .target = "/v1/blobs/" + name_of("theirs") + "?task=key:run",
                                         .body_bytes = 6,
                                         .body = slowly,
                                         .wanted_body = {}},
                                        {});
    EXPECT_TRUE(done && done->status == 201U);
  });
  const auto is_busy = [&] {
    const auto refused = put(server, "/v1/blobs/" + name_of("one") + "?task=key:run", "one");
    return refused && refused->status == 503U;
  };
  has_begun.wait();
  EXPECT_TRUE(eventually(is_busy));
  const std::stop_source master, module;
  Tried store(at(server), "run", milliseconds(1));
  const auto refused = store.put(bytes_of_text("ours"), master.get_token());
  EXPECT_TRUE(!refused && refused.error().code == Errc::exhausted);
  store.once_in_vain = [&] { is_enough.count_down(); };
  const std::string ours(kInlineBytesMax + 1, 'x');
  const auto carried = carry(result_type<std::string>(), &ours, &store, module.get_token());
  ASSERT_TRUE(carried) << carried.error().message;
  EXPECT_FALSE(store.once_in_vain) << "it was told at once";
}

// However long it had been under way by then.
TEST(ABlobAtAServer, IsPutAgainIfTheServerGoesAwayMeanwhile) {  // P15
  constexpr Duration kPatience = seconds(2);
  Served server(BATON_PROGRAM);
  Proxy proxy(server.port());  // stays where it is
  submit(server, "run");
  int given = 0;  // first to whoever measures it
  const ByteSource source = [&](const ByteSink& into) {
    if (auto begun = into("some"); !begun) return begun;
    if (++given == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kPatience.ms + 100));
      server.kill();
      server.start();
      proxy.set_target(server.port());
    }
    return into(" more");
  };
  client::ClientOptions options;
  options.addresses = {proxy.address()};
  ServerBlobs store(options, "run", kPatience);
  const auto stored = store.put(source, {});
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(fetch_text(store, *stored, {}).value(), "some more");
}

TEST(ABlobAtAServer, IsNotTakenWhileTheDiskIsNearlyFull) {
  const SmallDisk disk("512m");  // of which some is left for the log
  SKIP_WITHOUT(disk);
  Served server(BATON_PROGRAM, {"--segment-bytes", "4MiB"}, {.directory = disk.path() + "/data"});
  submit(server, "run");
  const auto status = [&] {
    return put(server, "/v1/blobs/" + name_of("one") + "?task=key:run", "one")->status;
  };
  EXPECT_EQ(status(), 201U);
  disk.fill();
  EXPECT_TRUE(eventually([&] { return status() == 507U; }));
  disk.make_room();
  EXPECT_TRUE(eventually([&] { return status() == 201U; }));
}

// X5: submissions would be refused for its sake, and snapshots have no room.
TEST(ABlobAtAServer, DoesNotMakeTheDiskNearlyFull) {
  constexpr std::uint64_t kMiB = 1 << 20;
  constexpr std::uint64_t kSetAside = 7 * 40 * kMiB;  // completions, and log until the next snapshot
  const SmallDisk disk("420m");
  SKIP_WITHOUT(disk);
  Served server(BATON_PROGRAM, {"--segment-bytes", "40MiB"}, {.directory = disk.path() + "/data"});
  submit(server, "run");
  ASSERT_TRUE(eventually([&] { return disk.free_bytes() < 345 * kMiB; })) << "the next segment is there";
  const auto put_all_but = [&](std::uint64_t left) {
    const std::string bytes(disk.free_bytes() - left, 'x');
    return put(server, "/v1/blobs/" + name_of(bytes) + "?task=key:run", bytes);
  };
  const auto refused = put_all_but(kSetAside - 8 * kMiB);
  EXPECT_TRUE(!refused || refused->status == 507U) << "who is still talking may not hear it";
  EXPECT_EQ(put_all_but(kSetAside + 8 * kMiB)->status, 201U);
  submit(server, "another");
}

}  // namespace
}  // namespace baton::pipeline
