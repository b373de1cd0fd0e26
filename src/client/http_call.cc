#include "client/http_call.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

#include "client/call.h"
#include "wire/tls.h"

namespace baton::client {
namespace {

constexpr std::size_t kKeptBody = std::size_t{64} << 10;
constexpr std::size_t kHeadMax = std::size_t{64} << 10;

// A connection that waits, for as long as something happens now and then and nobody stops it.
class Conversation {
 public:
  Conversation(const ClientOptions& options, const std::stop_token& stop) : options_(options), stop_(stop) {}
  ~Conversation() {
    if (socket_ >= 0) ::close(socket_);
  }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  Status connect(const Address& where) {
    auto reached = reach(where);
    if (reached && options_.tls) reached = agree_on_tls(where);
    if (reached || reached.error().code != Errc::outcome_unknown) return reached;
    // Whatever broke off, nothing has been asked yet.
    return failure(Errc::unavailable, where.text() + ": " + reached.error().message);
  }

  Status say(std::string_view bytes) {
    if (!tls_) {
      std::string plain(bytes);
      return flush(plain);
    }
    std::string plain(bytes);
    tls_->send(plain);
    return flush(tls_->output());
  }

  // What came is in `input`. False: the other side has ended.
  Result<bool> read() {
    for (;;) {
      char bytes[std::size_t{64} << 10];
      const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) {
        if (auto ready = wait(POLLIN); !ready) return std::unexpected(ready.error());
        continue;
      }
      if (count < 0) return broken(errno);
      if (count == 0) return false;
      const std::string_view got(bytes, static_cast<std::size_t>(count));
      if (!tls_) {
        input += got;
      } else if (auto taken = tls_->receive(got, input); !taken) {
        if (taken.error().code == Errc::closed) return !input.empty();
        return std::unexpected(taken.error());
      }
      return true;
    }
  }

  std::string input;

 private:
  static std::unexpected<Error> broken(int error) {
    return failure(Errc::outcome_unknown, std::string("the connection broke: ") + std::strerror(error));
  }

  Status reach(const Address& where) {
    auto endpoints = resolve(where);
    if (!endpoints) return std::unexpected(endpoints.error());
    Status reached = failure(Errc::unavailable, where.text() + " has no address");
    for (const Endpoint& endpoint : *endpoints) {
      if (reached = try_endpoint(endpoint); reached) break;
    }
    return reached;
  }

  Status agree_on_tls(const Address& where) {
    auto context =
        wire::TlsContext::for_client({options_.tls->certificate, options_.tls->key, options_.tls->ca});
    if (!context) return std::unexpected(context.error());
    tls_ = (*context)->connect(where.host);
    while (!tls_->is_ready()) {
      if (auto sent = flush(tls_->output()); !sent) return sent;
      auto got = read();
      if (!got) return std::unexpected(got.error());
      if (!*got) return failure(Errc::unavailable, where.text() + " hung up before TLS was agreed on");
    }
    return {};
  }

  Status try_endpoint(const Endpoint& endpoint) {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    auto socket = begin_connecting(endpoint);
    if (!socket) return std::unexpected(socket.error());
    socket_ = *socket;
    if (auto ready = wait(POLLOUT); !ready) return ready;
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return failure(Errc::unavailable, endpoint.text + ": " + std::strerror(error));
    return {};
  }

  Status flush(std::string& output) {
    for (std::size_t sent = 0; sent < output.size();) {
      const ssize_t count = ::send(socket_, output.data() + sent, output.size() - sent, MSG_NOSIGNAL);
      if (count >= 0) {
        sent += static_cast<std::size_t>(count);
      } else if (errno == EAGAIN) {
        if (auto ready = wait(POLLOUT); !ready) return ready;
      } else if (errno != EINTR) {
        return broken(errno);
      }
    }
    output.clear();
    return {};
  }

  Status wait(short events) const {
    constexpr int kStep = 100;
    for (std::int64_t waited = 0; waited < options_.deadline.ms; waited += kStep) {
      if (stop_.stop_requested()) return failure(Errc::closed, "stopped");
      pollfd polled{.fd = socket_, .events = events, .revents = 0};
      if (::poll(&polled, 1, kStep) > 0) return {};
    }
    return failure(Errc::outcome_unknown,
                   "nothing was heard for " + std::to_string(options_.deadline.ms) + " ms");
  }

  const ClientOptions& options_;
  const std::stop_token& stop_;
  int socket_ = -1;
  std::unique_ptr<wire::TlsFilter> tls_;
};

std::string head_of(const Address& where, const ClientOptions& options, const HttpRequest& request) {
  std::string head = request.method + " " + request.target + " HTTP/1.1\r\nHost: " + where.text() +
                     "\r\nConnection: close\r\n";
  if (!options.token.empty()) head += "Authorization: Bearer " + options.token + "\r\n";
  if (request.body) head += "Content-Length: " + std::to_string(request.body_bytes) + "\r\n";
  return head + "\r\n";
}

// The value of a header, whatever the case of its name; empty: there is none.
std::string_view header(std::string_view head, std::string_view name) {
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
    const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    const auto same = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
    if (line.size() <= name.size() || line[name.size()] != ':') continue;
    if (!std::ranges::equal(line.substr(0, name.size()), name, same)) continue;
    const std::string_view value = line.substr(name.size() + 1);
    return value.substr(std::min(value.find_first_not_of(' '), value.size()));
  }
  return {};
}

Result<HttpReply> hear(Conversation& conversation, const HttpRequest& request) {
  std::size_t end = std::string::npos;
  while ((end = conversation.input.find("\r\n\r\n")) == std::string::npos) {
    auto more = conversation.read();
    if (!more) return std::unexpected(more.error());
    if (!*more || conversation.input.size() > kHeadMax)
      return failure(Errc::outcome_unknown, "the connection ended before there was an answer");
  }
  const std::string head = conversation.input.substr(0, end);
  conversation.input.erase(0, end + 4);
  HttpReply reply;
  if (head.size() > 12) std::from_chars(head.data() + 9, head.data() + 12, reply.status);
  std::uint64_t left = 0;
  const std::string_view length = header(head, "content-length");
  std::from_chars(length.data(), length.data() + length.size(), left);
  if (request.method == "HEAD") left = 0;
  const bool is_wanted = reply.status == 200 && request.wanted_body;
  for (;;) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, conversation.input.size()));
    const std::string_view piece = std::string_view(conversation.input).substr(0, count);
    if (!is_wanted) {
      reply.body += piece.substr(0, kKeptBody - std::min(kKeptBody, reply.body.size()));
    } else if (!piece.empty()) {
      if (auto taken = request.wanted_body(piece); !taken) return std::unexpected(taken.error());
    }
    left -= count;
    conversation.input.clear();
    if (left == 0) return reply;
    auto more = conversation.read();
    if (!more) return std::unexpected(more.error());
    if (!*more) return failure(Errc::outcome_unknown, "the connection ended in the middle of the answer");
  }
}

}  // namespace

Result<HttpReply> call_http(const Address& where, const ClientOptions& options, const HttpRequest& request,
                            const std::stop_token& stop) {
  Conversation conversation(options, stop);
  if (auto reached = conversation.connect(where); !reached) return std::unexpected(reached.error());
  auto said = conversation.say(head_of(where, options, request));
  if (said && request.body)
    said = request.body([&](std::string_view bytes) { return conversation.say(bytes); });
  // Who is refused in the middle of what he says may still hear why.
  auto reply = said || said.error().code == Errc::outcome_unknown
                   ? hear(conversation, request)
                   : Result<HttpReply>(std::unexpected(said.error()));
  if (!reply && !said) return std::unexpected(said.error());
  return reply;
}

}  // namespace baton::client
