#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backstage.h"

namespace baton::server {
namespace {

using testing::HasSubstr;

TEST(Stats, CountTasksInAllAndInTheNamespace) {
  Backstage stage;
  Client client(stage);
  client.ask({"SUBMITMANY", "a", "3", "x", "y", "z"});
  client.ask({"LEASE", "w", "a"});
  client.ask({"USE", "other"});
  client.ask({"SUBMIT", "b", "x"});
  const std::string stats = client.ask({"STATS"});
  const std::size_t here = stats.find("namespace");
  EXPECT_EQ(member(stats, "queues"), "2");
  EXPECT_EQ(member(stats, "waiting"), "3");
  EXPECT_EQ(member(stats, "leased"), "1");
  EXPECT_EQ(member(stats.substr(here), "name"), "other");
  EXPECT_EQ(member(stats.substr(here), "queues"), "1");
  EXPECT_EQ(member(stats.substr(here), "waiting"), "1");
  EXPECT_EQ(member(stats.substr(here), "leased"), "0");
  EXPECT_EQ(member(stats.substr(here), "payload_bytes"), "1");
}

TEST(Stats, TellHowTheServerIsDoing) {
  Backstage stage;
  Client client(stage);
  client.ask({"SUBMIT", "q", "x"});
  client.ask({"LEASE", "w", "q"});
  client.ask({"EXTEND", "1-2", "1-2-3"});
  const std::string stats = client.ask({"STATS"});
  EXPECT_EQ(member(stats, "leases"), "1");
  EXPECT_EQ(member(stats, "workers"), "1");
  EXPECT_EQ(member(stats, "commands"), "4");
  EXPECT_EQ(member(stats, "refusals"), "1");
  EXPECT_EQ(member(stats, "durable_lag"), "0");
  EXPECT_GE(std::stoull(member(stats, "flushed_entries")), 3u);
  EXPECT_GE(std::stoull(member(stats, "flush_p99_us")), std::stoull(member(stats, "flush_p50_us")));
  EXPECT_GT(std::stoull(member(stats, "flush_p50_us")), 0u);
  EXPECT_GT(std::stoull(member(stats, "memory_bytes")), 1'000'000u);
}

TEST(Workers, AreWhoeverAskedForWorkOrSaidThatItIsThere) {
  Backstage stage;
  Client client(stage);
  client.ask({"SUBMIT", "q", "x"});
  client.ask({"HEARTBEAT", "idle", "CAPACITY", "4", "CAPABILITY", "gpu"});
  client.ask({"LEASE", "busy", "q", "CAPABILITY", "cpu"});
  client.ask({"LEASE", "hungry", "q"});
  const std::string all = client.ask({"WORKERS"});
  EXPECT_THAT(all, HasSubstr("workers *3"));
  EXPECT_EQ(member(all, "worker"), "busy");
  EXPECT_EQ(member(all, "leases"), "1");
  EXPECT_EQ(member(all, "capabilities"), "cpu");
  EXPECT_THAT(all, HasSubstr("hungry"));
  const std::string idle = all.substr(all.find("idle"));
  EXPECT_EQ(member(idle, "capacity"), "4");
  EXPECT_EQ(member(idle, "capabilities"), "gpu");
  EXPECT_EQ(member(all, "cursor"), "0");
  const std::string page = client.ask({"WORKERS", "COUNT", "2"});
  EXPECT_THAT(page, HasSubstr("workers *2"));
  EXPECT_THAT(client.ask({"WORKERS", "CURSOR", member(page, "cursor")}), HasSubstr("workers *1"));
  client.ask({"USE", "other"});
  EXPECT_THAT(client.ask({"WORKERS"}), HasSubstr("workers *0"));
}

}  // namespace
}  // namespace baton::server
