#include "server/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/check.h"

namespace baton::server {

// Without a few descriptors at its start a server is of no use, so there is nothing to recover from.
Poller::Poller() : poll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  BATON_CHECK(poll_.is_open() && wake_.is_open());
  watch(wake_.number(), For::reading, [this](Ready) { run_posted(); });
}

void Poller::watch(int descriptor, For what, std::function<void(Ready)> ready) {
  watchers_[descriptor] = std::move(ready);
  const std::uint32_t out = what == For::reading ? 0u : std::uint32_t{EPOLLOUT};
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLET | out, .data = {.fd = descriptor}};
  BATON_CHECK(::epoll_ctl(poll_.number(), EPOLL_CTL_ADD, descriptor, &event) == 0);
}

void Poller::forget(int descriptor) {
  watchers_.erase(descriptor);
  ::epoll_ctl(poll_.number(), EPOLL_CTL_DEL, descriptor, nullptr);
}

bool Poller::wait(Duration most) {
  constexpr int kEventsMax = 256;
  epoll_event events[kEventsMax];
  const int wait_ms = static_cast<int>(std::clamp<std::int64_t>(most.ms, 0, INT_MAX));
  const int count = ::epoll_wait(poll_.number(), events, kEventsMax, wait_ms);
  BATON_CHECK(count >= 0 || errno == EINTR);
  for (int at = 0; at < count; ++at) {
    const std::uint32_t what = events[at].events;
    const auto watcher = watchers_.find(events[at].data.fd);
    if (watcher == watchers_.end()) continue;
    watcher->second({.to_read = (what & ~EPOLLOUT) != 0,
                     .to_write = (what & EPOLLOUT) != 0,
                     .hung_up = (what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0});
  }
  return count > 0;
}

void Poller::wake() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(woken_, true)) return;
  }
  ::eventfd_write(wake_.number(), 1);
}

void Poller::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
  }
  wake();
}

void Poller::run_posted() {
  eventfd_t ignored = 0;
  ::eventfd_read(wake_.number(), &ignored);
  std::vector<std::function<void()>> posted;
  {
    const std::lock_guard lock(mutex_);
    woken_ = false;
    posted.swap(posted_);
  }
  for (const auto& task : posted) task();
}

}  // namespace baton::server
