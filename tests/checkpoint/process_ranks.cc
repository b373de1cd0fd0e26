#include "tests/checkpoint/process_ranks.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/check.h"

namespace baton::checkpoint {
namespace {

bool send_all(int socket, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_all(int socket, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = ::recv(socket, into.data(), into.size(), 0);
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

bool send_message(int socket, const Bytes& message) {
  Bytes framed;
  ByteWriter to(framed);
  to.fixed(std::uint64_t{message.size()});
  to.raw(message);
  return send_all(socket, framed);
}

std::optional<Bytes> receive_message(int socket) {
  Bytes length(8);
  if (!receive_all(socket, length)) return {};
  Bytes message(load<std::uint64_t>(length.data()));
  if (!receive_all(socket, message)) return {};
  return message;
}

void put(ByteWriter& to, const Error& error) {
  to.fixed(static_cast<std::uint8_t>(error.code));
  to.text(error.message);
}
Error take_error(ByteReader& from) {
  const auto code = static_cast<Errc>(from.fixed<std::uint8_t>());
  return {code, std::string(from.text())};
}

class AtParent final : public Collective {
 public:
  AtParent(int socket, Rank rank, Rank world_size) : socket_(socket), rank_(rank), world_size_(world_size) {}
  Rank rank() const override { return rank_; }
  Rank world_size() const override { return world_size_; }
  std::uint64_t generation() const override { return 1; }
  Result<std::unique_ptr<Collective>> stream(const std::string&) override {
    return failure(Errc::invalid_request, "there are no streams here");
  }

 protected:
  Result<std::vector<Bytes>> meet(const Operation& operation, const Contribution& mine,
                                  const Call&) override {
    Bytes message;
    ByteWriter to(message);
    to.fixed(static_cast<std::uint8_t>(operation.kind));
    to.text(operation.name);
    to.varint(operation.root);
    to.fixed(std::uint8_t{mine.has_value()});
    if (mine) to.text(text_of(*mine));
    if (!mine) put(to, mine.error());
    if (!send_message(socket_, message)) return failure(Errc::unavailable, "the parent is gone");
    const auto answer = receive_message(socket_);
    if (!answer) return failure(Errc::unavailable, "the parent is gone");
    ByteReader from(*answer);
    if (from.fixed<std::uint8_t>() == 0) return std::unexpected(take_error(from));
    std::vector<Bytes> got;
    for (std::uint64_t count = from.varint(); count > 0; --count) {
      const ByteView bytes = bytes_of(from.text());
      got.emplace_back(bytes.begin(), bytes.end());
    }
    return got;
  }

 private:
  const int socket_;
  const Rank rank_;
  const Rank world_size_;
};

}  // namespace

ProcessRanks::ProcessRanks(Rank world_size, const std::function<void(Collective&)>& run) {
  for (Rank rank = 0; rank < world_size; ++rank) {
    int pair[2];
    BATON_CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    const pid_t process = ::fork();
    BATON_CHECK(process >= 0);
    if (process == 0) {
      ::close(pair[0]);
      for (const int other : sockets_) ::close(other);
      AtParent collective(pair[1], rank, world_size);
      run(collective);
      ::_exit(0);
    }
    ::close(pair[1]);
    processes_.push_back(process);
    sockets_.push_back(pair[0]);
  }
}

ProcessRanks::~ProcessRanks() {
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    if (sockets_[rank] < 0) continue;
    ::kill(processes_[rank], SIGKILL);
    lose(static_cast<Rank>(rank));
  }
}

void ProcessRanks::serve(const std::function<std::optional<Rank>()>& kill) {
  for (;;) {
    std::vector<pollfd> polled;
    for (const int socket : sockets_) polled.push_back({.fd = socket, .events = POLLIN, .revents = 0});
    if (std::ranges::all_of(sockets_, [](int socket) { return socket < 0; })) return;
    BATON_CHECK(::poll(polled.data(), polled.size(), 60'000) > 0);
    if (const auto victim = kill(); victim && sockets_[*victim] >= 0) ::kill(processes_[*victim], SIGKILL);
    for (Rank rank = 0; rank < polled.size(); ++rank)
      if (polled[rank].fd >= 0 && polled[rank].revents != 0) take(rank);
    settle();
  }
}

void ProcessRanks::take(Rank rank) {
  const auto message = receive_message(sockets_[rank]);
  if (!message) return lose(rank);
  ByteReader from(*message);
  Arrival arrival;
  arrival.operation.kind = static_cast<OperationKind>(from.fixed<std::uint8_t>());
  arrival.operation.name = from.text();
  arrival.operation.root = static_cast<Rank>(from.varint());
  if (from.fixed<std::uint8_t>() == 1) {
    const ByteView bytes = bytes_of(from.text());
    arrival.brought = Bytes(bytes.begin(), bytes.end());
  } else {
    arrival.brought = std::unexpected(take_error(from));
  }
  if (const auto told = to_be_told_.extract(rank)) return answer(rank, std::unexpected(told.mapped()));
  arrivals_.emplace(rank, std::move(arrival));
}

void ProcessRanks::lose(Rank rank) {
  ::close(std::exchange(sockets_[rank], -1));
  ::waitpid(processes_[rank], nullptr, 0);
  arrivals_.erase(rank);
  if (!lost_) lost_ = Error{Errc::unavailable, "rank " + std::to_string(rank) + " is gone"};
}

void ProcessRanks::settle() {
  if (lost_) return fail(*lost_);
  for (const auto& [rank, arrival] : arrivals_) {
    if (arrival.brought) continue;
    const Error& error = arrival.brought.error();
    return fail({error.code, "rank " + std::to_string(rank) + ": " + error.message});
  }
  if (arrivals_.size() < sockets_.size()) return;
  const Operation operation = arrivals_.begin()->second.operation;
  for (const auto& [rank, arrival] : arrivals_)
    if (arrival.operation != operation) return fail({Errc::conflict, "ranks are at different operations"});
  completed_.push_back(operation.name);
  const auto all = std::exchange(arrivals_, {});
  for (const auto& [rank, arrival] : all) {
    std::vector<Bytes> share;
    if (operation.kind == OperationKind::broadcast) share.push_back(*all.at(operation.root).brought);
    const bool gets_all = operation.kind != OperationKind::gather || rank == operation.root;
    if (group::gathers(operation.kind) && gets_all) {
      for (const auto& [other, brought] : all) share.push_back(*brought.brought);
    }
    answer(rank, share);
  }
}

// Who has come hears it now, who has not when it comes.
void ProcessRanks::fail(const Error& error) {
  const auto all = std::exchange(arrivals_, {});
  if (all.empty()) return;
  for (Rank rank = 0; rank < sockets_.size(); ++rank) {
    if (all.contains(rank)) {
      answer(rank, std::unexpected(error));
    } else {
      to_be_told_.emplace(rank, error);
    }
  }
}

void ProcessRanks::answer(Rank rank, const Result<std::vector<Bytes>>& what) {
  Bytes message;
  ByteWriter to(message);
  to.fixed(std::uint8_t{what.has_value()});
  if (what) {
    to.varint(what->size());
    for (const Bytes& bytes : *what) to.text(text_of(bytes));
  } else {
    put(to, what.error());
  }
  (void)send_message(sockets_[rank], message);  // one that is gone is noticed when it is read from
}

}  // namespace baton::checkpoint
