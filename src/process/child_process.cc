#include "process/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <list>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "base/descriptor.h"
#include "process/descendants.h"
#include "process/quiet_pipe.h"

extern char** environ;

namespace baton::process {
namespace {

constexpr std::size_t kErrorsKept = 2048;
constexpr Duration kKillAgain = seconds(1);
constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr int kReadsPerTurn = 1;    // whoever never falls silent must not keep us from looking up
constexpr int kReadsAtTheEnd = 16;  // as much as a pipe can hold

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

struct Pipe {
  Descriptor read;
  Descriptor write;
  bool open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
    return true;
  }
  bool open_nothing() {
    read = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return read.is_open();
  }
};

void do_not_block(const Descriptor& descriptor) { ::fcntl(descriptor.number(), F_SETFL, O_NONBLOCK); }

pollfd wants(const Descriptor& descriptor, short events) {
  return {.fd = descriptor.number(), .events = events, .revents = 0};  // a closed one, -1, is left out
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_of(const ChildCommand& command) {
  std::vector<std::string> all;
  const std::vector<std::string>& more = command.environment;
  const auto is_set_anew = [&](std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('=') + 1);
    return std::ranges::any_of(more, [&](const std::string& one) { return one.starts_with(name); });
  };
  const auto is_withheld = [&](std::string_view variable) {
    return std::ranges::find(command.withheld, variable.substr(0, variable.find('='))) !=
           command.withheld.end();
  };
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_set_anew(*variable) && !is_withheld(*variable)) all.emplace_back(*variable);
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string_view path_in(const std::vector<std::string>& environment) {
  constexpr std::string_view kName = "PATH=";
  for (const std::string_view variable : environment) {
    if (variable.starts_with(kName)) return variable.substr(kName.size());
  }
  return "/bin:/usr/bin";
}

// Where a program may be: first by the PATH that it gets itself, so that what a command runs is what its own
// commands would. Then by ours, for that PATH need not have the shell.
std::vector<std::string> places_of(const std::string& program, const std::vector<std::string>& environment) {
  if (program.empty() || program.find('/') != std::string::npos) return {program};
  std::vector<std::string> places;
  const char* const ours = std::getenv("PATH");
  for (std::string_view path : {path_in(environment), std::string_view(ours != nullptr ? ours : "")}) {
    while (!path.empty()) {
      const std::string_view folder = path.substr(0, path.find(':'));
      places.push_back(folder.empty() ? program : std::string(folder) + "/" + program);
      path.remove_prefix(std::min(path.size(), folder.size() + 1));
    }
  }
  return places;
}

// Held while a command has our files: from vfork until it runs.
std::shared_mutex& starting() {
  static std::shared_mutex mutex;  // of the process, as its files are
  return mutex;
}

std::unexpected<Error> cannot(const char* what, int error) {
  const bool is_hopeless = error == E2BIG;
  return failure(is_hopeless ? Errc::too_large : Errc::io_failed,
                 fmt::format("{}: {}", what, std::strerror(error)));
}

class Child {
 public:
  explicit Child(const ChildCommand& command) : command_(command) {}
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Status start();
  ChildEnd attend(std::span<const std::stop_token> stops);

 private:
  // All that exec needs, made before vfork.
  struct Program {
    std::vector<char*> places;  // where it is, if not at the one before
    std::vector<char*> arguments;
    std::vector<char*> as_script;  // the same for the shell, which reads what is no program
    std::vector<char*> variables;
  };
  [[noreturn]] void become(Program& program);
  static int execute(Program& program);
  void feed();
  void listen(Descriptor& from, int reads);
  void keep(const Descriptor& from, std::string_view text);
  void signal_group(int number) const { ::kill(-pid_, number); }
  void begin_ending();
  void wait_for_those_left_behind();
  int patience() const;

  const ChildCommand& command_;
  Pipe input_, output_, errors_;
  volatile int trouble_ = 0;  // why the program could not be started
  Descriptor ended_;
  Descriptor stopped_;
  const pid_t parent_ = ::getpid();
  pid_t pid_ = -1;
  std::size_t fed_ = 0;
  std::optional<std::int64_t> kill_at_;
  ChildEnd end_;
};

Child::~Child() {
  if (pid_ <= 0) return;
  signal_group(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

// Between vfork and exec, in the memory of its parent, which stands still meanwhile: system calls and nothing
// else. A fork would copy the tables of all our memory for a program that has no use for them.
void Child::become(Program& program) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent_) ::_exit(127);  // it was killed before that, and nobody would end us
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(input_.read.number(), STDIN_FILENO);
  ::dup2(output_.write.number(), STDOUT_FILENO);
  ::dup2(errors_.write.number(), STDERR_FILENO);
  const bool is_there = command_.directory.empty() || ::chdir(command_.directory.c_str()) == 0;
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  trouble_ = is_there ? execute(program) : errno;
  ::_exit(127);
}

// Like execvpe(), which would look for it on our own PATH. Returns why it cannot be.
int Child::execute(Program& program) {
  int trouble = ENOENT;
  for (char* const place : program.places) {
    ::execve(place, program.arguments.data(), program.variables.data());
    if (errno == ENOEXEC) {
      program.as_script[1] = place;
      ::execve(program.as_script[0], program.as_script.data(), program.variables.data());
    }
    if (errno != ENOENT && errno != ENOTDIR) trouble = errno;
    if (trouble != ENOENT && trouble != EACCES) break;
  }
  return trouble;
}

Status Child::start() {
  if (!command_.directory.empty() && ::access(command_.directory.c_str(), X_OK) != 0)
    return cannot(("the folder " + command_.directory).c_str(), errno);
  stopped_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const bool has_input = !command_.input.empty();
  if (has_input ? !input_.open() : !input_.open_nothing()) return cannot("no input for the command", errno);
  if (!stopped_.is_open() || !output_.open() || !errors_.open())
    return cannot("no pipe to the command", errno);
  const std::vector<std::string> environment = environment_of(command_);
  const std::vector<std::string> places = places_of(command_.words[0], environment);
  std::vector<std::string> script = command_.words;
  script.insert(script.begin(), "/bin/sh");
  Program program{pointers(places), pointers(command_.words), pointers(script), pointers(environment)};
  program.places.pop_back();  // it is no list for exec
  // No handler of ours may run in the child: it would do so in our memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::shared_lock start(starting());
  const pid_t pid = ::vfork();
  if (pid == 0) become(program);
  const int error = errno;
  start.unlock();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return cannot("the command cannot be started", error);
  pid_ = pid;
  if (trouble_ != 0) {
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    return cannot(command_.words[0].c_str(), trouble_);
  }
  ended_ = Descriptor(
      static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));  // the header of glibc 2.36 is not for C++
  if (!ended_.is_open()) return cannot("the command cannot be watched", errno);
  input_.read.close();
  output_.write.close();
  errors_.write.close();
  if (has_input) do_not_block(input_.write);
  do_not_block(output_.read);
  do_not_block(errors_.read);
  return {};
}

void Child::feed() {
  const QuietPipe quiet;  // a command need not read its input
  const ssize_t took =
      ::write(input_.write.number(), command_.input.data() + fed_, command_.input.size() - fed_);
  if (took > 0) fed_ += static_cast<std::size_t>(took);
  const bool wants_no_more = took < 0 && errno != EAGAIN && errno != EINTR;
  if (wants_no_more || fed_ == command_.input.size()) input_.write.close();
}

void Child::keep(const Descriptor& from, std::string_view text) {
  if (command_.said) {
    command_.said(&from == &output_.read ? Output::standard : Output::errors, text);
  } else if (&from == &output_.read) {
    end_.output += text;
    if (end_.output.size() <= command_.output_bytes_max) return;
    end_.said_too_much = true;
    end_.output.clear();
    begin_ending();
  } else {
    (void)!::write(STDERR_FILENO, text.data(), text.size());  // for whoever looks on
    end_.errors += text;
    if (end_.errors.size() > kErrorsKept) end_.errors.erase(0, end_.errors.size() - kErrorsKept);
  }
}

void Child::listen(Descriptor& from, int reads) {
  char bytes[kReadBytes];
  while (from.is_open() && reads-- > 0) {
    const ssize_t got = ::read(from.number(), bytes, sizeof bytes);
    if (got > 0) {
      keep(from, {bytes, static_cast<std::size_t>(got)});
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else {
      from.close();
    }
  }
}

void Child::begin_ending() {
  if (kill_at_) return;
  signal_group(SIGTERM);
  kill_at_ = now_ms() + command_.grace.ms;
}

int Child::patience() const {
  if (!kill_at_) return -1;
  return static_cast<int>(std::clamp<std::int64_t>(*kill_at_ - now_ms(), 0, 60'000));
}

// They have the rest of the grace. As long as nobody has asked how the command ended, its number is that of
// its group and of nobody else.
void Child::wait_for_those_left_behind() {
  for (int pause_ms = 1; now_ms() < *kill_at_ && is_alive(pid_); pause_ms = std::min(2 * pause_ms, 50)) {
    pollfd polled[] = {wants(output_.read, POLLIN), wants(errors_.read, POLLIN)};
    (void)::poll(polled, std::size(polled), std::min(pause_ms, patience()));
    listen(output_.read, kReadsPerTurn);
    listen(errors_.read, kReadsPerTurn);
  }
  signal_group(SIGKILL);
}

ChildEnd Child::attend(std::span<const std::stop_token> stops) {
  const auto tell = [this] {
    const std::uint64_t one = 1;
    (void)!::write(stopped_.number(), &one, sizeof one);
  };
  std::list<std::stop_callback<decltype(tell)>> callbacks;
  for (const std::stop_token& stop : stops) callbacks.emplace_back(stop, tell);
  for (bool runs = true; runs;) {
    pollfd polled[] = {wants(ended_, POLLIN), wants(stopped_, POLLIN), wants(input_.write, POLLOUT),
                       wants(output_.read, POLLIN), wants(errors_.read, POLLIN)};
    const int ready = ::poll(polled, std::size(polled), patience());
    if (ready < 0 && errno != EINTR) break;
    if (kill_at_ && now_ms() >= *kill_at_) {
      signal_group(SIGKILL);
      kill_at_ = now_ms() + kKillAgain.ms;
    }
    if (ready <= 0) continue;
    if (polled[1].revents != 0) {
      std::uint64_t ignored = 0;
      (void)!::read(stopped_.number(), &ignored, sizeof ignored);
      end_.was_stopped = true;
      begin_ending();
    }
    if (polled[2].revents != 0) feed();
    runs = polled[0].revents == 0;
    // What it had said when it ended is there; what others say whom it left behind is not its own.
    listen(output_.read, runs ? kReadsPerTurn : kReadsAtTheEnd);
    listen(errors_.read, runs ? kReadsPerTurn : kReadsAtTheEnd);
  }
  if (kill_at_) wait_for_those_left_behind();
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  if (WIFEXITED(status)) end_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end_.signal = WTERMSIG(status);
  return std::move(end_);
}

}  // namespace

void let_starts_pass() { const std::unique_lock lock(starting()); }

Result<ChildEnd> run_child(const ChildCommand& command, std::span<const std::stop_token> stops) {
  Child child(command);
  if (auto started = child.start(); !started) return std::unexpected(started.error());
  return child.attend(stops);
}

}  // namespace baton::process
