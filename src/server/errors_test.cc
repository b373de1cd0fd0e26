// Every error that docs/protocol.md lists, from a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include "server/access.h"
#include "tests/damage.h"
#include "tests/peer.h"

namespace baton::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct Row {
  std::string word;
  std::string status;  // empty: not over HTTP
};
std::vector<Row> documented_errors() {
  std::ifstream in(BATON_SOURCE_DIR "/docs/protocol.md");
  std::vector<Row> rows;
  bool in_errors = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) in_errors = line == "## Errors";
    if (!in_errors || !line.starts_with("| ") || line.starts_with("| word")) continue;
    const std::size_t first = line.find(" |", 2);
    const std::size_t second = line.find('|', first + 2);
    std::string status = line.substr(first + 2, second - first - 2);
    std::erase(status, ' ');
    rows.push_back({line.substr(2, first - 2), status});
  }
  return rows;
}

// What somebody who never stops asking hears when the server stops.
std::string last_words(std::uint16_t (Running::*port)() const, const std::string& request) {
  const Running server;
  Peer peer((server.*port)());
  std::string many;
  for (int count = 0; count < 100; ++count) many += request;
  std::thread asks([&] {
    while (peer.tries_to_send(many)) {
    }
  });
  peer.hear("lsn");
  server.stop();
  const std::string heard = peer.hear_all();
  asks.join();
  return heard;
}

// Provokes errors and keeps in mind which ones came.
class Errors : public testing::Test {
 protected:
  // Over the Redis protocol: `line` is answered with this error.
  void says(std::string_view line, const std::string& word) {
    EXPECT_THAT(resp_->ask(line), StartsWith("-" + word + " ")) << line;
    seen_.insert(word);
  }
  // Over HTTP.
  void replies(const std::string& request, const std::string& status, const std::string& word) {
    http_->send(request);
    EXPECT_THAT(http_->hear("}}\n"),
                AllOf(StartsWith("HTTP/1.1 " + status + " "), HasSubstr("\"code\":\"" + word + "\"")))
        << request;
    seen_.insert(word + " " + status);
  }
  void both(const std::string& line, const std::string& verb, const std::string& body,
            const std::string& status, const std::string& word) {
    says(line, word);
    replies(post(verb, body, bearer(ops_)), status, word);
  }
  static std::string bearer(const NewToken& token) { return "Authorization: Bearer " + token.token + "\r\n"; }

  void start() {
    std::ofstream(aside_.path() + "/tokens")
        << "some " << some_.hash << " default=submit\nops " << ops_.hash << " *=all\n";
    ServerOptions options;
    options.tokens = aside_.path() + "/tokens";
    options.audit = aside_.path() + "/audit";
    options.coordinator.engine.rules.each_namespace.queues_max = 2;
    options.coordinator.engine.cache_bytes = 0;
    server_ = std::make_unique<Running>(std::move(options));
    resp_ = std::make_unique<Peer>(server_->port());
    http_ = std::make_unique<Peer>(server_->http_port());
  }

  void as_a_stranger() {
    says("SUBMIT q x", "NOAUTH");
    says("AUTH wrong", "WRONGPASS");
    says("HELLO 4", "NOPROTO");
    resp_->ask("AUTH " + some_.token);
    says("LEASE w q", "NOPERM");
    resp_->ask("USE other");
    says("SUBMIT q x", "NOPERM");
    resp_->ask("USE default");
    resp_->ask("AUTH " + ops_.token);
    replies(post("submit", "{}"), "401", "NOAUTH");
    replies(post("submit", "{}", "Authorization: Bearer wrong\r\n"), "401", "WRONGPASS");
    replies(post("pause", R"({"queue":"q"})", bearer(some_)), "403", "NOPERM");
  }

  void by_what_makes_no_sense() {
    says("FROB", "UNKNOWN_COMMAND");
    replies(post("frob", "{}", bearer(ops_)), "404", "UNKNOWN_COMMAND");
    both("SUBMIT two\xff x", "submit", "{\"queue\":\"two\xff\",\"payload\":\"x\"}", "400", "INVALID_REQUEST");
    std::string line = "LEASE w q";
    std::string also;
    for (int queue = 0; queue < 16; ++queue) line += " ALSO r", also += R"(,"r")";
    both(line, "lease", R"({"worker":"w","queue":"q","also":[)" + also.substr(1) + "]}", "413", "TOO_LARGE");
    EXPECT_THAT(resp_->ask("MULTI\r\nFROB\r\nEXEC"), HasSubstr("\r\n-EXECABORT "));
    seen_.insert("EXECABORT");
  }

  void by_what_is_true_already() {
    both("GET key:none", "get", R"({"task":"key:none"})", "404", "NOT_FOUND");
    resp_->ask("SUBMIT q one KEY k");
    both("SUBMIT q other KEY k", "submit", R"({"queue":"q","payload":"other","key":"k"})", "409", "CONFLICT");
    both("REQUEUE key:k", "requeue", R"({"task":"key:k"})", "409", "WRONG_STATE");
    both("EXTEND key:k 1-2-3", "extend", R"({"task":"key:k","lease":"1-2-3"})", "409", "LEASE_UNKNOWN");
    const std::string lost = value_of(resp_->ask("LEASE w q"), "lease");
    resp_->ask("CANCEL key:k");
    both("EXTEND key:k " + lost, "extend", fmt::format(R"({{"task":"key:k","lease":"{}"}})", lost), "409",
         "LEASE_LOST");
    resp_->ask("SUBMIT q held KEY h MAX_HOLD_MS 600000");
    const std::string held = value_of(resp_->ask("LEASE w q TTL_MS 600000"), "lease");
    both("EXTEND key:h " + held + " TTL_MS 86400000", "extend",
         fmt::format(R"({{"task":"key:h","lease":"{}","ttl_ms":86400000}})", held), "409", "HOLD_EXCEEDED");
    resp_->ask("PAUSE second");
    both("SUBMIT third x", "submit", R"({"queue":"third","payload":"x"})", "503", "EXHAUSTED");
  }

  void by_a_bad_disk() {
    resp_->ask("SUBMIT q to-be-damaged KEY d");
    damage(server_->directory.path() + "/data/wal", "to-be-damaged");
    both("GET key:d", "get", R"({"task":"key:d"})", "500", "CORRUPT");
    std::filesystem::remove(aside_.path() + "/audit");
    std::filesystem::create_symlink("/dev/full", aside_.path() + "/audit");
    ::kill(::getpid(), SIGHUP);
    while (resp_->ask("PAUSE q").find("-IO_FAILED ") == std::string::npos) {
    }
    both("PAUSE q", "pause", R"({"queue":"q"})", "500", "IO_FAILED");
  }

  void by_falling_out_of_step() {
    resp_->send("*1\r\n:5\r\n");
    EXPECT_THAT(resp_->hear_all(), StartsWith("-PROTOCOL_ERROR "));
    http_->send("nonsense\r\n\r\n");
    EXPECT_THAT(http_->hear_all(), AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("PROTOCOL_ERROR")));
    seen_.insert({"PROTOCOL_ERROR", "PROTOCOL_ERROR 400"});
  }

  // Somebody's request has to come just as the server stops, which may take a few servers.
  void by_a_stop() {
    constexpr int kTries = 20;
    server_.reset();  // one at a time in a process
    for (int tries = 0; tries < kTries && !seen_.contains("CLOSED"); ++tries) {
      const std::string said = last_words(&Running::port, "SUBMIT q x\r\n");
      if (said.find("-CLOSED ") != std::string::npos) seen_.insert("CLOSED");
    }
    const std::string request = post("submit", R"({"queue":"q","payload":"x"})");
    for (int tries = 0; tries < kTries && !seen_.contains("CLOSED 500"); ++tries) {
      const std::string said = last_words(&Running::http_port, request);
      const std::size_t at = std::min(said.rfind("HTTP/1.1 500 "), said.size());
      if (said.find("CLOSED", at) != std::string::npos) seen_.insert("CLOSED 500");
    }
  }

  const NewToken some_ = make_token();
  const NewToken ops_ = make_token();
  const TemporaryDirectory aside_;
  std::unique_ptr<Running> server_;
  std::unique_ptr<Peer> resp_;
  std::unique_ptr<Peer> http_;
  std::set<std::string> seen_;  // "NOT_FOUND" over the Redis protocol, "NOT_FOUND 404" over HTTP
};

// X3, X8
TEST_F(Errors, AreAllAnsweredAsDocumented) {
  start();
  as_a_stranger();
  by_what_makes_no_sense();
  by_what_is_true_already();
  by_a_bad_disk();
  by_falling_out_of_step();
  by_a_stop();
  ASSERT_GT(documented_errors().size(), 10u);
  for (const auto& [word, status] : documented_errors()) {
    EXPECT_TRUE(seen_.contains(word)) << word << " was not tried over the Redis protocol";
    EXPECT_TRUE(status.empty() || seen_.contains(word + " " + status)) << word << " was not tried over HTTP";
  }
}

}  // namespace
}  // namespace baton::server
