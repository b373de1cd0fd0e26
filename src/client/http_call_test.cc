// One HTTP request, to somebody who does not answer it.
#include "client/http_call.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "base/descriptor.h"

namespace baton::client {
namespace {

// Hears the beginning of what the first caller says, and hangs up.
class HangsUp {
 public:
  enum class Manner { politely, with_a_reset };

  explicit HangsUp(Manner manner) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(listener_.number(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(listener_.number(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, manner] {
      const Descriptor caller(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
      char bytes[64 << 10];
      EXPECT_GT(::recv(caller.number(), bytes, sizeof bytes, 0), 0);
      const linger at_once{manner == Manner::with_a_reset, 0};
      ::setsockopt(caller.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    });
  }
  Address address() const { return {"127.0.0.1", std::to_string(port_)}; }

 private:
  const Descriptor listener_;
  std::uint16_t port_ = 0;
  std::jthread thread_;
};

class AServerThatHangsUp : public testing::TestWithParam<HangsUp::Manner> {};
INSTANTIATE_TEST_SUITE_P(With, AServerThatHangsUp,
                         testing::Values(HangsUp::Manner::politely, HangsUp::Manner::with_a_reset));

// X7: nothing was asked yet, so it may be asked again.
TEST_P(AServerThatHangsUp, BeforeTlsIsAgreedOnIsUnavailable) {
  const HangsUp server(GetParam());
  ClientOptions options;
  options.tls.emplace();
  const auto reply = call_http(server.address(), options, {}, {});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::unavailable);
  EXPECT_TRUE(reply.error().message.starts_with(server.address().text())) << reply.error().message;
}

TEST_P(AServerThatHangsUp, InsteadOfAnsweringMayHaveDoneIt) {
  const HangsUp server(GetParam());
  const auto reply = call_http(server.address(), {}, {}, {});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::outcome_unknown) << reply.error().message;
}

}  // namespace
}  // namespace baton::client
