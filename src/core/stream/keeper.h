// The state of streams in the hands of apply() and of whoever reads a snapshot: each change keeps indexes,
// lists and the digest up.
#pragma once

#include <string_view>

#include "base/check.h"
#include "core/stream/streams.h"
#include "core/stream/streams_digest.h"

namespace baton::core::streams {

// While a stream is changed. Afterwards it stands where it belongs: among what is ready, with its holder, or
// with the idle ones.
class StreamChange {
 public:
  StreamChange(Streams& all, Slot slot, std::uint64_t& digest);
  ~StreamChange();
  StreamChange(const StreamChange&) = delete;
  StreamChange& operator=(const StreamChange&) = delete;

 private:
  Streams& all_;
  const Slot slot_;
  std::uint64_t& digest_;
  const Ready ready_;
  const Slot owner_;
  const bool idle_;
};

class Keeper {
 public:
  Keeper(Streams& all, std::uint64_t& digest) : all_(all), digest_(digest) {}

  Slot make_space(std::string_view ns);  // or the one that is there; likewise the next
  Slot make_service(std::string_view ns, std::string_view service);
  void remove_unused(Slot service);  // nothing belongs to it
  Slot make_history(Slot space, stream::StreamId id);
  Slot recorded_instance(Number number) const;
  Slot recorded_stream(Number number) const;
  Slot recorded_message(Number number) const;
  Slot recorded_letter(Number number) const;  // a dead one

  void add(const Instance& instance);
  void remove_instance(Slot slot);
  // With neither messages nor holder, which come with changes of their own.
  Slot add(const Stream& stream);
  void remove_stream(Slot slot);  // an idle one, or one that has lost its only message
  // Behind those that are there, or where its sequence puts it.
  Slot add(const Message& message);
  void remove_message(Slot slot);
  void add(Memory<Letter>& into, const Letter& letter);
  void remove_dead(Slot slot);
  void remember(const Seen& seen);
  void remember(const Tombstone& tombstone);
  void remember(const StoredEvent& event);
  void remember(const ReceptorRecord& record);
  void remember(const Checkpoint& checkpoint);

  // The oldest of its kind.
  void forget_kept();
  void forget_seen();
  void forget_tombstone();
  void forget_event();
  void forget_receptor();
  void forget_checkpoint();

  template <class Fact>
  Rewrite<Fact> rewrite(const Fact& fact) {
    return {all_, fact, digest_};
  }
  StreamChange change(Slot stream) { return {all_, stream, digest_}; }

 private:
  template <class T>
  Slot keep(Memory<T>& memory, const T& fact);
  template <class T>
  void drop(Memory<T>& memory, Slot slot);
  template <class T>
  Slot oldest(const Memory<T>& memory) const;
  Slot next_to(const Stream& of, const Message& message) const;
  void let_go(Slot history);
  void use_service(Slot service) { ++all_.services[service].uses; }
  void let_go_of_service(Slot service);
  void use_space(Slot space) { ++all_.spaces[space].uses; }
  void let_go_of_space(Slot space);

  Streams& all_;
  std::uint64_t& digest_;
  Slot put_back_ = 0;  // the message that was last added before another one
};

}  // namespace baton::core::streams
