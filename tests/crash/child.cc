#include "tests/crash/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/check.h"

extern char** environ;

namespace baton::crash {
namespace {

std::int64_t ms_until(Deadline deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max<std::int64_t>(left.count(), 0);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

Child::Child(const ChildOptions& options) {
  int output[2];
  int errors[2];
  BATON_CHECK(::pipe2(output, O_CLOEXEC) == 0 && ::pipe2(errors, O_CLOEXEC) == 0);
  std::vector<std::string> arguments = options.command;
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  for (const auto& [name, value] : options.environment) variables.push_back(name + "=" + value);
  const auto argv = pointers(arguments);
  const auto envp = pointers(variables);

  pid_ = ::fork();
  BATON_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody is left behind if the test itself dies
    ::dup2(output[1], STDOUT_FILENO);
    ::dup2(errors[1], STDERR_FILENO);
    if (options.run_as != 0 && (::setgid(options.run_as) != 0 || ::setuid(options.run_as) != 0)) ::_exit(126);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(output[1]);
  ::close(errors[1]);
  output_ = output[0];
  error_output_ = errors[0];
}

Child::~Child() {
  signal(SIGKILL);
  wait(after_ms(10'000));
  if (output_ >= 0) ::close(output_);
  if (error_output_ >= 0) ::close(error_output_);
}

void Child::signal(int number) {
  if (!ended_) ::kill(pid_, number);
}

void Child::stop() {
  int status = 0;
  signal(SIGSTOP);
  BATON_CHECK(::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status));
}

// Reads what has come in, waiting up to `wait_ms` for it. False once both outputs are closed.
bool Child::take(std::int64_t wait_ms) {
  pollfd watched[] = {{output_, POLLIN, 0}, {error_output_, POLLIN, 0}};
  if (output_ < 0 && error_output_ < 0) return false;
  if (::poll(watched, 2, static_cast<int>(wait_ms)) <= 0) return true;
  char bytes[65536];
  for (pollfd& one : watched) {
    if (one.fd < 0 || one.revents == 0) continue;
    int& descriptor = &one == watched ? output_ : error_output_;
    const ssize_t got = ::read(descriptor, bytes, sizeof bytes);
    if (got <= 0) {
      ::close(std::exchange(descriptor, -1));
    } else if (&one == watched) {
      partial_.append(bytes, static_cast<std::size_t>(got));
    } else {
      errors_.append(bytes, static_cast<std::size_t>(got));
    }
  }
  std::size_t begin = 0;
  for (std::size_t end; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines_.push_back(partial_.substr(begin, end - begin));
  }
  partial_.erase(0, begin);
  return output_ >= 0 || error_output_ >= 0;
}

bool Child::listen(Deadline deadline, const std::function<bool(const std::string&)>& line) {
  for (;;) {
    while (next_ < lines_.size()) {
      if (!line(lines_[next_++])) return true;
    }
    lines_.clear();
    next_ = 0;
    const std::int64_t left = ms_until(deadline);
    if (!take(left) && lines_.empty()) return false;
    if (left == 0 && lines_.empty()) return true;
  }
}

Exit Child::wait(Deadline deadline) {
  if (ended_) return exit_;
  int status = 0;
  // Its output is taken meanwhile, so that it cannot hang on a full pipe.
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (ms_until(deadline) == 0) {
      ::kill(pid_, SIGKILL);
      BATON_CHECK(::waitpid(pid_, &status, 0) == pid_);
      break;
    }
    if (!take(5)) ::usleep(500);
  }
  ended_ = true;
  while (take(0) && (output_ >= 0 || error_output_ >= 0)) {
    pollfd watched[] = {{output_, POLLIN, 0}, {error_output_, POLLIN, 0}};
    if (::poll(watched, 2, 0) <= 0) break;
  }
  if (WIFEXITED(status)) exit_.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) exit_.signal = WTERMSIG(status);
  return exit_;
}

Ran run(const ChildOptions& options, std::int64_t limit_ms) {
  Child child(options);
  Ran ran;
  const Deadline deadline = after_ms(limit_ms);
  child.listen(deadline, [&](const std::string& line) {
    ran.lines.push_back(line);
    return true;
  });
  ran.exit = child.wait(deadline);
  ran.errors = child.errors();
  return ran;
}

}  // namespace baton::crash
