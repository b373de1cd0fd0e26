// One connection's conversation, whatever its protocol: bytes in, bytes out. The socket is another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "server/crowd.h"

namespace baton::server {

class Session {
 public:
  virtual ~Session() = default;

  virtual void receive(std::string_view bytes) = 0;
  virtual void resume() = 0;  // there may be room for more commands now
  // False while it has enough to do; receive() again only when it is true.
  virtual bool wants_more() const = 0;
  // Nothing more will come out than what is in output() and the replies to what is under way.
  virtual bool is_closing() const = 0;
  virtual bool is_idle() const = 0;     // nothing is under way
  virtual bool is_waiting() const = 0;  // for something that may never come
  virtual bool is_halfway() const = 0;  // part of a command has come
  // It wants no more because too much has come in part, of all connections.
  virtual bool is_held_back() const { return false; }
  virtual std::size_t half_bytes() const { return 0; }  // of what has come in part
  // Bytes of a long body that have gone through: while they grow, it is not stuck.
  virtual std::uint64_t moved() const { return 0; }
  // The other side has shown a certificate with this name.
  virtual void certified(std::string_view) {}
  // The file of tokens was read again.
  virtual void access_changed() = 0;
  // It has to say who it is, and has not done so.
  virtual bool is_stranger() const { return false; }

  // Part of a command has come, and for too long nothing more. What is said now is the last.
  virtual void give_up() {}

  // Room that was needed once, all but so much of each kind; that of the output is its owner's to give back.
  virtual void give_back_room(std::size_t) {}

  // Of replies that wait for those before them.
  virtual std::size_t held_bytes() const { return 0; }

  // From which address, and the place it takes among those from there.
  void arrived(std::string from, Crowd::Place place) {
    from_ = std::move(from);
    place_ = std::move(place);
  }

  std::string& output() { return output_; }
  const std::string& output() const { return output_; }

 protected:
  std::string output_;
  std::string from_;

 private:
  Crowd::Place place_;
};

}  // namespace baton::server
