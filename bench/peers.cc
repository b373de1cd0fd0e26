#include "peers.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "floor.h"

namespace baton::bench {
namespace {

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), length);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(socket);
  return ntohs(address.sin_port);
}

int try_connect(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address{
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(socket);
    return -1;
  }
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

// A child that ends with us.
class Process {
 public:
  template <class Body>
  explicit Process(Body body) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    ::_exit(1);
  }
  ~Process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return pid_; }

 private:
  pid_t pid_;
};

void become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(1);
  ::execvp(arguments[0], arguments.data());
}

bool is_installed(const std::string& program) {
  return std::system(fmt::format("command -v {} >/dev/null", program).c_str()) == 0;
}

// What the client does for each request has to be little: it shares the machine with what it measures.
void put_header(std::string& out, char type, std::size_t number) {
  char text[24] = {type};
  char* end = std::to_chars(text + 1, text + sizeof text - 2, number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(text, end);
}

void put_command(std::string& out, std::initializer_list<std::string_view> words) {
  put_header(out, '*', words.size());
  for (const std::string_view word : words) {
    put_header(out, '$', word.size());
    out += word;
    out += "\r\n";
  }
}

// The length of the RESP reply at the start of `input`, 0 if it is not all there.
std::size_t reply_length(std::string_view input) {
  const char* at = input.data();
  const char* const end = at + input.size();
  for (std::int64_t left = 1; left > 0; --left) {
    if (at == end) return 0;
    const char type = *at++;
    const bool is_nothing = at != end && *at == '-';
    std::uint64_t number = 0;
    for (; at != end && *at != '\r'; ++at) number = number * 10 + static_cast<std::uint64_t>(*at - '0');
    if (end - at < 2) return 0;
    at += 2;
    if (is_nothing) continue;
    if (type == '*') left += static_cast<std::int64_t>(number);
    if (type != '$') continue;
    if (static_cast<std::uint64_t>(end - at) < number + 2) return 0;
    at += number + 2;
  }
  return static_cast<std::size_t>(at - input.data());
}

// The value that follows the bulk string `name`.
std::string_view value_of(std::string_view reply, std::string_view name) {
  const std::size_t found = reply.find(name);
  if (found == std::string_view::npos) return {};
  const std::size_t begin = reply.find("\r\n", found + name.size() + 1);
  const std::size_t end = reply.find("\r\n", begin + 2);
  return reply.substr(begin + 2, end - begin - 2);
}

class Served : public Peer {
 public:
  template <class Body>
  Served(std::string name, std::uint16_t port, Body body)
      : name_(std::move(name)), port_(port), process_(std::move(body)) {
    ::close(connect_to(port));
  }
  std::string name() const override { return name_; }
  pid_t process() const override { return process_.id(); }
  std::uint16_t port() const override { return port_; }

 private:
  const std::string name_;
  const std::uint16_t port_;
  Process process_;
};

class Baton final : public Served {
 public:
  using Served::Served;
  void put(std::string& out, Step step, std::string_view held, std::string_view payload) const override {
    const std::size_t space = std::min(held.find(' '), held.size());
    const std::string_view task = held.substr(0, space);
    const std::string_view lease = held.substr(std::min(space + 1, held.size()));
    switch (step) {
      case Step::submit: return put_command(out, {"SUBMIT", "q", payload});
      case Step::lease: return put_command(out, {"LEASE", "w", "q"});
      case Step::complete: return put_command(out, {"COMPLETE", task, lease});
      case Step::complete_and_lease: return put_command(out, {"NEXT", task, lease, "w", "q"});
    }
  }
  Reply take(std::string_view input, Step step) const override {
    Reply reply{.length = reply_length(input)};
    const std::string_view text = input.substr(0, reply.length);
    reply.failed = reply.length > 0 && text[0] == '-';
    if (reply.length == 0 || (step != Step::lease && step != Step::complete_and_lease)) return reply;
    const std::string_view tasks = text.substr(std::min(text.find("tasks\r\n"), text.size()));
    reply.empty = tasks.find("$4\r\ntask\r\n") == std::string_view::npos;
    if (!reply.empty)
      reply.held = fmt::format("{} {}", value_of(tasks, "\ntask\r"), value_of(tasks, "\nlease\r"));
    return reply;
  }
};

class Redis final : public Served {
 public:
  using Served::Served;
  void put(std::string& out, Step step, std::string_view held, std::string_view payload) const override {
    switch (step) {
      case Step::submit: {
        // Each has to be different, or another one would be removed.
        value_.assign(payload);
        for (std::uint64_t at = 0, rest = ++number_; at < 12; ++at, rest /= 10)
          value_[at] = static_cast<char>('0' + rest % 10);
        return put_command(out, {"RPUSH", "q", value_});
      }
      case Step::lease: return put_command(out, {"LMOVE", "q", "held", "LEFT", "RIGHT"});
      case Step::complete:
      case Step::complete_and_lease: return put_command(out, {"LREM", "held", "1", held});
    }
  }
  Reply take(std::string_view input, Step step) const override {
    Reply reply{.length = reply_length(input)};
    if (reply.length == 0) return reply;
    reply.failed = input[0] == '-';
    reply.empty = step == Step::lease && input.starts_with("$-1");
    if (step == Step::lease && !reply.empty) {
      const std::size_t begin = input.find("\r\n") + 2;
      reply.held = input.substr(begin, reply.length - begin - 2);
    }
    return reply;
  }

 private:
  mutable std::uint64_t number_ = 0;
  mutable std::string value_;
};

class Beanstalkd final : public Served {
 public:
  using Served::Served;
  void put(std::string& out, Step step, std::string_view held, std::string_view payload) const override {
    switch (step) {
      case Step::submit:
        fmt::format_to(std::back_inserter(out), "put 0 0 30 {}\r\n{}\r\n", payload.size(), payload);
        return;
      case Step::lease: out += "reserve-with-timeout 0\r\n"; return;
      case Step::complete:
      case Step::complete_and_lease: fmt::format_to(std::back_inserter(out), "delete {}\r\n", held); return;
    }
  }
  Reply take(std::string_view input, Step step) const override {
    const std::size_t end = input.find("\r\n");
    if (end == std::string_view::npos) return {};
    Reply reply{.length = end + 2};
    if (step != Step::lease) {
      reply.failed = !input.starts_with("INSERTED") && !input.starts_with("DELETED");
      return reply;
    }
    reply.empty = !input.starts_with("RESERVED");
    if (reply.empty) return reply;
    const std::size_t space = input.find(' ', 9);
    std::size_t bytes = 0;
    std::from_chars(input.data() + space + 1, input.data() + end, bytes);
    reply.held = input.substr(9, space - 9);
    reply.length = end + 2 + bytes + 2;
    if (reply.length > input.size()) reply.length = 0;
    return reply;
  }
};

class Floor final : public Served {
 public:
  using Served::Served;
  void put(std::string& out, Step, std::string_view, std::string_view payload) const override {
    put_command(out, {"SUBMIT", "q", payload});
  }
  Reply take(std::string_view input, Step) const override { return {.length = reply_length(input)}; }
};

}  // namespace

int connect_to(std::uint16_t port) {
  for (int tries = 0; tries < 200; ++tries) {
    if (const int socket = try_connect(port); socket >= 0) return socket;
    ::usleep(50'000);
  }
  fmt::print(stderr, "bench: nobody listens on port {}\n", port);
  std::exit(1);
}

std::unique_ptr<Peer> start_baton(const std::string& program, const std::string& directory) {
  const std::uint16_t port = free_port();
  return std::make_unique<Baton>("baton", port, [=] {
    become({program, "serve", "--data", directory, "--listen", fmt::format("127.0.0.1:{}", port), "--http",
            "127.0.0.1:0"});
  });
}

std::unique_ptr<Peer> start_redis(const std::string& directory) {
  if (!is_installed("redis-server")) return nullptr;
  std::filesystem::create_directories(directory);
  const std::uint16_t port = free_port();
  return std::make_unique<Redis>("redis", port, [=] {
    become({"redis-server", "--port", std::to_string(port), "--bind", "127.0.0.1", "--dir", directory,
            "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--auto-aof-rewrite-percentage",
            "0"});
  });
}

std::unique_ptr<Peer> start_beanstalkd(const std::string& directory) {
  if (!is_installed("beanstalkd")) return nullptr;
  std::filesystem::create_directories(directory);
  const std::uint16_t port = free_port();
  return std::make_unique<Beanstalkd>("beanstalkd", port, [=] {
    become({"beanstalkd", "-l", "127.0.0.1", "-p", std::to_string(port), "-b", directory, "-f", "0"});
  });
}

std::unique_ptr<Peer> start_floor(const std::string& directory) {
  std::filesystem::create_directories(directory);
  const std::uint16_t port = free_port();
  return std::make_unique<Floor>("floor", port, [=] { run_floor(port, directory + "/log"); });
}

}  // namespace baton::bench
