#include "cli/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

namespace baton::cli {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // another screen, no cursor
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr int kDeadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGQUIT};

// As it was before. A handler of signals has to find it, hence no member.
termios before{};

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t took = ::write(STDOUT_FILENO, text.data(), text.size());
    if (took <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(took));
  }
}

void give_back() {
  put(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

void die(int number) {
  give_back();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

TerminalSignals::TerminalSignals() {
  sigset_t ours;
  ::sigemptyset(&ours);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP}) ::sigaddset(&ours, number);
  ::pthread_sigmask(SIG_BLOCK, &ours, nullptr);
  descriptor_ = ::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

TerminalSignals::~TerminalSignals() { ::close(descriptor_); }

Terminal::Terminal(const TerminalSignals& signals) : signals_(signals) {
  ::tcgetattr(STDIN_FILENO, &before);
  for (const int number : kDeadly) ::signal(number, die);
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  put(kEnter);
}

Terminal::~Terminal() {
  give_back();
  for (const int number : kDeadly) ::signal(number, SIG_DFL);
}

bool Terminal::is_there() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

TerminalSize Terminal::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {.columns = 80, .lines = 24};
  return {.columns = size.ws_col, .lines = size.ws_row};
}

// In one write, and each line clears only what is left of itself: nothing flickers.
void Terminal::draw(const std::vector<FrameLine>& lines) {
  std::string frame = "\x1b[H";
  for (std::size_t at = 0; at < lines.size(); ++at) {
    if (at > 0) frame += '\n';
    if (lines[at].is_heading) frame += "\x1b[1m";
    frame += lines[at].text + "\x1b[0m\x1b[K";
  }
  put(frame + "\x1b[J");
}

Terminal::Event Terminal::wait(Duration at_most) {
  pollfd polled[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                     {.fd = signals_.descriptor(), .events = POLLIN, .revents = 0}};
  if (::poll(polled, std::size(polled), static_cast<int>(at_most.ms)) <= 0) return Event::nothing;
  if (polled[1].revents != 0) {
    signalfd_siginfo caught{};
    if (::read(signals_.descriptor(), &caught, sizeof caught) != sizeof caught) return Event::nothing;
    if (caught.ssi_signo == SIGWINCH) return Event::resized;
    return caught.ssi_signo == SIGTSTP ? Event::nothing : Event::end;
  }
  return ::read(STDIN_FILENO, &key_, 1) == 1 ? Event::key : Event::end;
}

}  // namespace baton::cli
