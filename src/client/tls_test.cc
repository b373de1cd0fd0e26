// The client over TLS: the same promises, and nobody else's certificate.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <mutex>

#include "client/client.h"
#include "tests/certificate.h"
#include "tests/proxy.h"
#include "tests/served.h"

namespace baton::client {
namespace {

ClientOptions to(const std::string& address, const TlsOptions& tls) {
  return {
      .addresses = {address}, .tls = tls, .backoff_min = milliseconds(5), .backoff_max = milliseconds(100)};
}

// A server that wants TLS, and a client that talks to it through a proxy.
struct Network {
  Certificate certificate{"coordinator"};
  Served server{BATON_PROGRAM, {"--tls-certificate", certificate.file(), "--tls-key", certificate.key()}};
  Proxy proxy{server.port()};
  Client client{to(proxy.address(), {.ca = certificate.file()})};
};

TEST(Tls, CarriesCallsOfEverySize) {
  Network network;
  Client& client = network.client;
  const std::string large(200'000, 'x');
  ASSERT_TRUE(client.submit({.queue = "q", .payload = large, .key = "large"}));
  EXPECT_EQ(client.get("key:large")->payload, large);
  std::atomic<int> accepted = 0, open = 2000;
  for (int i = 0; i < 2000; ++i) {
    client.submit({.queue = "many", .payload = std::string(static_cast<std::size_t>(i), 'y')},
                  [&](const Result<Submitted>& task) {
                    accepted += task ? 1 : 0;
                    --open;
                  });
  }
  EXPECT_TRUE(eventually([&] { return open == 0; }));
  EXPECT_EQ(accepted, 2000);
  const auto leased = client.lease({.worker = "w", .queues = {"q"}, .wait = seconds(5)});
  ASSERT_TRUE(leased) << leased.error().message;
  EXPECT_EQ(client.complete(leased->at(0).held(), "done")->outcome, "completed");
}

TEST(Tls, SurvivesACutAtEveryByte) {  // X2
  Network network;
  ASSERT_TRUE(network.client.submit({.queue = "q", .payload = "0123456789", .key = "k"}));
  const std::uint64_t before = network.proxy.request_bytes();
  ASSERT_TRUE(network.client.get("key:k"));
  const auto request = static_cast<std::int64_t>(network.proxy.request_bytes() - before);
  ASSERT_GT(request, 20);
  for (std::int64_t at = 0; at < request; ++at) {
    network.proxy.set({.cut_requests_after = at});
    const auto task = network.client.get("key:k");
    ASSERT_TRUE(task) << at << ": " << task.error().message;
  }
}

TEST(Tls, DoesNotRepeatWhatMayHaveBeenHeard) {
  Network network;
  ASSERT_TRUE(network.client.queues());
  std::uint64_t accepted = 0, unknown = 0;
  for (std::int64_t at = 0; at < 120; ++at) {
    network.proxy.set({.cut_requests_after = at});
    const auto task = network.client.submit({.queue = "q", .payload = "x"});
    if (task) {
      ++accepted;
    } else {
      EXPECT_EQ(task.error().code, Errc::outcome_unknown) << task.error().message;
      ++unknown;
    }
  }
  network.proxy.set({});
  EXPECT_GT(unknown, 0u);
  const std::uint64_t waiting = network.client.queues()->queues.at(0).waiting;
  EXPECT_GE(waiting, accepted);
  EXPECT_LE(waiting, accepted + unknown);
}

TEST(Tls, RefusesACoordinatorThatIsNotWhoItShouldBe) {  // X4
  Network network;
  const Certificate other("other");
  Client stranger(to(network.server.address(), {.ca = other.file()}));
  const auto refused = stranger.queues();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::permission_denied);
  EXPECT_NE(refused.error().message.find("certificate is not accepted"), std::string::npos)
      << refused.error().message;

  const Certificate elsewhere("elsewhere", "DNS:elsewhere.example");
  Served server(BATON_PROGRAM, {"--tls-certificate", elsewhere.file(), "--tls-key", elsewhere.key()});
  Client misled(to(server.address(), {.ca = elsewhere.file()}));
  EXPECT_EQ(misled.queues().error().code, Errc::permission_denied);
}

TEST(Tls, ShowsItsOwnCertificateToACoordinatorThatAsks) {  // X4
  const Certificate server_side("coordinator"), ours("ci", "DNS:ci");
  Served server(BATON_PROGRAM, {"--tls-certificate", server_side.file(), "--tls-key", server_side.key(),
                                "--tls-client-ca", ours.file()});
  Client known(
      to(server.address(), {.ca = server_side.file(), .certificate = ours.file(), .key = ours.key()}));
  EXPECT_TRUE(known.queues()) << known.queues().error().message;
  Client unknown(to(server.address(), {.ca = server_side.file()}));
  EXPECT_EQ(unknown.queues({}, seconds(2)).error().code, Errc::permission_denied);
}

std::string complaint_about(const TlsOptions& tls) {
  Client client(to("127.0.0.1:1", tls));
  const Error error = client.queues().error();
  EXPECT_EQ(error.code, Errc::invalid_request);
  return error.message;
}

TEST(Tls, SaysWhatIsWrongWithWhichFile) {  // X7
  const Certificate ours("ci"), other("other");
  const std::string text = ours.folder.path() + "/text";
  std::ofstream(text) << "no certificate\n";
  EXPECT_EQ(complaint_about({.ca = "/nowhere.pem"}),
            "/nowhere.pem: No such file or directory; name the file with the certificates of those who are "
            "trusted");
  EXPECT_TRUE(
      complaint_about({.ca = text}).starts_with(text + ": there are no certificates in PEM form in it ("));
  const auto about = [](const std::string& certificate, const std::string& key) {
    return complaint_about({.certificate = certificate, .key = key});
  };
  EXPECT_EQ(about(ours.file(), "/nowhere.key"),
            "/nowhere.key: No such file or directory; name the file with the key");
  EXPECT_EQ(about(ours.file(), ""), ours.file() + ": its key is missing; name the file with it");
  EXPECT_TRUE(about(text, ours.key()).starts_with(text + ": there is no certificate in PEM form in it ("));
  EXPECT_TRUE(about(ours.file(), text).starts_with(text + ": there is no private key in PEM form in it ("));
  EXPECT_EQ(about(ours.file(), other.key()),
            other.key() + ": it is not the key of the certificate in " + ours.file());
}

// Signs it again, to end at this moment.
void let_expire(const Certificate& certificate) {
  ASSERT_EQ(crash::run({.command = {"/usr/bin/openssl", "x509", "-in", certificate.file(), "-days", "0",
                                    "-signkey", certificate.key(), "-out", certificate.file()}})
                .exit.code,
            0);
}

// Also from those who do not look at their own certificate, as our client does.
TEST(Tls, LetsNobodyInWhoseCertificateHasExpired) {  // X4
  const Certificate server_side("coordinator"), ours("ci", "DNS:ci");
  let_expire(ours);
  Served server(BATON_PROGRAM, {"--tls-certificate", server_side.file(), "--tls-key", server_side.key(),
                                "--tls-client-ca", ours.file()});
  const crash::Ran refused =
      crash::run({.command = {"/usr/bin/openssl", "s_client", "-ign_eof", "-connect", server.address(),
                              "-CAfile", server_side.file(), "-cert", ours.file(), "-key", ours.key()},
                  .environment = {}});
  EXPECT_EQ(refused.exit.code, 1);
  EXPECT_NE(refused.errors.find("alert certificate expired"), std::string::npos) << refused.errors;
}

TEST(Tls, SaysThatACertificateHasExpired) {  // X7
  const Certificate expired("old");
  let_expire(expired);
  const std::string complaint = complaint_about({.certificate = expired.file(), .key = expired.key()});
  EXPECT_TRUE(complaint.starts_with(expired.file() + ": the certificate expired on 20")) << complaint;
  EXPECT_TRUE(complaint.ends_with(" UTC, and nobody would accept it; renew it")) << complaint;
}

// One of two coordinators shows a certificate that is not to be trusted.
TEST(Tls, GoesOnToTheNextAddressAndSaysSo) {  // X4
  Network network;
  const Certificate other("other");
  Served impostor(BATON_PROGRAM, {"--tls-certificate", other.file(), "--tls-key", other.key()});
  ClientOptions options = to(impostor.address(), {.ca = network.certificate.file()});
  options.addresses.push_back(network.server.address());
  std::mutex mutex;
  std::vector<ConnectionNews> heard;
  options.news = [&](const ConnectionNews& news) {
    const std::lock_guard lock(mutex);
    heard.push_back(news);
  };
  Client client(options);
  EXPECT_TRUE(client.queues());
  const std::lock_guard lock(mutex);
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_TRUE(heard[0].was_turned_away);
  EXPECT_TRUE(
      heard[0].trouble.starts_with(impostor.address() + ": TLS: the coordinator's certificate is not"))
      << heard[0].trouble;
  EXPECT_EQ(heard[0].address, network.server.address());
  EXPECT_EQ(heard[1].trouble, "");
}

}  // namespace
}  // namespace baton::client
