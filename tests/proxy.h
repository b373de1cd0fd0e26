// A proxy that stands between a client and a server and does to them what networks do. Nothing outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace baton {

struct ProxyFaults {
  std::int64_t delay_ms = 0;             // each piece, in each direction
  std::size_t piece_bytes = 0;           // passed on at a time; 0: whatever there is
  bool holds_requests = false;           // takes them and does not pass them on
  bool holds_replies = false;            // likewise: with both, the connection is half open
  bool refuses = false;                  // new connections are reset
  std::int64_t cut_requests_after = -1;  // so many bytes are passed on, then every connection is reset, once
  std::int64_t cut_replies_after = -1;
};

class Proxy {
 public:
  explicit Proxy(std::uint16_t target);  // both on 127.0.0.1
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  void set_target(std::uint16_t port);  // of new connections
  void set(const ProxyFaults& faults);
  void reset();  // every connection, in both directions

  std::uint64_t connections() const;    // so far
  std::uint64_t request_bytes() const;  // passed on
  std::uint64_t reply_bytes() const;
  std::uint64_t cuts() const;

 private:
  struct Stream;
  struct Link;

  void run();
  void accept();
  bool move(Stream& stream, std::int64_t now);  // false: the link is over
  void wake() const;

  int listener_ = -1;
  int wakes_ = -1;
  std::uint16_t port_ = 0;

  mutable std::mutex mutex_;
  std::uint16_t target_;
  ProxyFaults faults_;
  bool resets_ = false;
  bool stops_ = false;
  std::uint64_t connections_ = 0;
  std::uint64_t passed_[2] = {0, 0};  // requests, replies
  std::uint64_t cuts_ = 0;

  std::list<Link> links_;  // the thread's own
  std::thread thread_;
};

}  // namespace baton
