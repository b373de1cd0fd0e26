// Questions about streams, for operators: what waits and is held, who works, what is the matter.
#include <optional>
#include <utility>

#include "core/stream/stream_query.h"
#include "core/stream/why.h"
#include "server/desk.h"
#include "server/stream_letters.h"
#include "server/verb.h"
#include "stream/work_batch.h"

namespace baton::server {
namespace {

constexpr Parameter kCount{"count", Kind::number, Place::option, "How many at most; 100 if not given"};
constexpr Parameter kCursor{"cursor", Kind::number, Place::option, "Where to go on, as the page before said"};
constexpr Parameter kStale{"stale_ms", Kind::number, Place::option,
                           "An instance silent for longer counts as gone; 600000"};
constexpr Parameter kStatus[] = {kCount, kCursor};
constexpr Parameter kInstances[] = {kCount, kCursor, kStale};
constexpr Parameter kLag[] = {kCount};
constexpr Parameter kPartitions[] = {kCount, kStale};
constexpr Parameter kWhy[] = {{"message", Kind::text, Place::position, "Id of the message, a UUID"}, kStale};
constexpr Parameter kLetters[] = {
    {"letter", Kind::number, Place::repeated, "Only this one"}, kCount, kCursor};

core::StreamLook look_of(const std::string& ns, Arguments& arguments) {
  return {.ns = ns,
          .stale = arguments.duration("stale_ms", stream::kStale),
          .count_max = arguments.number("count", 100, core::kListStreamsMax),
          .from = arguments.number("cursor", 0, INT64_MAX)};
}

std::string_view word_of(stream::Lane lane) { return lane == stream::Lane::outbox ? "outbox" : "inbox"; }

void write_time(ReplyWriter& reply, std::string_view name, Duration time) {
  reply.name(name), reply.number(time.ms);
}

void write_row(ReplyWriter& reply, const core::LaneView& row) {
  reply.map(row.oldest_claimable ? 9 : 8);
  reply.member("service", row.service);
  reply.member("lane", word_of(row.lane));
  reply.member("waiting", row.waiting);
  reply.member("held", row.held);
  reply.member("dead", row.dead);
  reply.member("streams", row.streams);
  reply.member("held_streams", row.held_streams);
  reply.member("parked_streams", row.parked_streams);
  if (row.oldest_claimable) write_time(reply, "oldest_claimable_ms", *row.oldest_claimable);
}

void write_row(ReplyWriter& reply, const core::InstanceView& row) {
  reply.map(row.rank ? 9 : 8);
  reply.member("service", row.service);
  reply.member("instance", stream::to_text(row.id.value));
  if (row.rank) reply.name("rank"), reply.number(*row.rank);
  reply.member("host", row.host);
  reply.name("process"), reply.number(row.process);
  write_time(reply, "silent_ms", row.silent);
  reply.name("is_stale"), reply.boolean(row.is_stale);
  reply.member("held_streams", row.held_streams);
  reply.member("held_messages", row.held_messages);
}

void write_row(ReplyWriter& reply, const core::StreamView& row) {
  reply.map(7);
  reply.member("service", row.service);
  reply.member("lane", word_of(row.lane));
  reply.member("stream", stream::to_text(row.id.value));
  reply.name("partition"), reply.number(row.partition);
  reply.member("messages", row.messages);
  write_time(reply, "waits_ms", row.waits);
  reply.member("state", row.state);
}

void write_row(ReplyWriter& reply, const core::PartitionView& row) {
  reply.map(5 + (row.oldest_claimable ? 1 : 0) + (row.offered_to ? 1 : 0));
  reply.member("service", row.service);
  reply.member("lane", word_of(row.lane));
  reply.name("partition"), reply.number(row.partition);
  reply.member("streams", row.streams);
  reply.member("messages", row.messages);
  if (row.oldest_claimable) write_time(reply, "oldest_claimable_ms", *row.oldest_claimable);
  if (row.offered_to) reply.member("offered_to", stream::to_text(row.offered_to->value));
}

template <class View>
void write_rows(ReplyWriter& reply, std::string_view name, const std::vector<View>& rows) {
  reply.name(name);
  reply.list(rows.size());
  for (const View& row : rows) write_row(reply, row);
}

// Looks once, and writes what it saw. `Question` is called with what it may look at and what is asked.
template <class Question>
class LookOperation final : public Operation {
 public:
  LookOperation(std::string_view list, core::StreamLook look, Question question)
      : list_(list), look_(std::move(look)), question_(std::move(question)) {}

  void begin(Desk& desk) override { desk.look(*this); }
  void look(engine::Engine& engine) override {
    look_.now = engine.now();
    seen_ = question_(engine, look_);
    lsn_ = engine.state().last;
  }
  std::size_t weight() const override { return 512; }
  void write(ReplyWriter& reply) override {
    reply.map(3);
    reply.member("lsn", lsn_);
    write_rows(reply, list_, seen_.rows);
    if constexpr (requires { seen_.next; }) {
      reply.member("cursor", seen_.next);
    } else {
      reply.name("complete"), reply.boolean(seen_.is_complete);
    }
  }

 private:
  const std::string_view list_;
  core::StreamLook look_;
  const Question question_;
  std::invoke_result_t<Question, engine::Engine&, const core::StreamLook&> seen_;
  core::Lsn lsn_ = 0;
};

template <class Question>
std::unique_ptr<Operation> operation(std::string_view list, core::StreamLook look, Question question) {
  return std::make_unique<LookOperation<Question>>(list, std::move(look), std::move(question));
}

std::unique_ptr<Operation> status(const std::string& ns, Arguments& arguments) {
  return operation("lanes", look_of(ns, arguments), [](engine::Engine& engine, const core::StreamLook& look) {
    return core::lanes(engine.state(), look);
  });
}

std::unique_ptr<Operation> instances(const std::string& ns, Arguments& arguments) {
  return operation("instances", look_of(ns, arguments),
                   [](engine::Engine& engine, const core::StreamLook& look) {
                     return core::instances(engine.state(), engine.workers().instances, look);
                   });
}

std::unique_ptr<Operation> lag(const std::string& ns, Arguments& arguments) {
  return operation(
      "streams", look_of(ns, arguments),
      [](engine::Engine& engine, const core::StreamLook& look) { return core::lag(engine.state(), look); });
}

std::unique_ptr<Operation> partitions(const std::string& ns, Arguments& arguments) {
  return operation("partitions", look_of(ns, arguments),
                   [](engine::Engine& engine, const core::StreamLook& look) {
                     return core::partitions(engine.state(), engine.workers().instances, look);
                   });
}

class WhyOperation final : public Operation {
 public:
  WhyOperation(core::StreamLook look, stream::MessageId message)
      : look_(std::move(look)), message_(message) {}

  std::size_t weight() const override { return 512; }  // many letters are looked through
  void begin(Desk& desk) override { desk.look(*this); }
  void look(engine::Engine& engine) override {
    look_.now = engine.now();
    answers_ = core::why(engine.state(), engine.workers().instances, look_, engine.rules(), message_);
    lsn_ = engine.state().last;
  }
  void looked(Desk& desk) override {
    said_.resize(answers_.size());
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (answers_[i].said.length > 0) desk.fetch(*this, i, answers_[i].said);
    }
  }
  void fetched(Desk&, std::size_t index, Result<Bytes> bytes) override { said_[index] = std::move(bytes); }
  void write(ReplyWriter& reply) override {
    reply.map(2);
    reply.member("lsn", lsn_);
    reply.name("answers");
    reply.list(answers_.size());
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      reply.map(2);
      reply.member("question", answers_[i].question);
      reply.member("answer", answers_[i].answer + said(i) + answers_[i].rest);
    }
  }

 private:
  std::string said(std::size_t i) const {
    if (!said_[i]) return said_[i].error().message;
    return std::string(text_of(*said_[i]));
  }

  core::StreamLook look_;
  const stream::MessageId message_;
  std::vector<core::WhyAnswer> answers_;
  std::vector<Result<Bytes>> said_;
  core::Lsn lsn_ = 0;
};

std::unique_ptr<Operation> why(const std::string& ns, Arguments& arguments) {
  const auto message = stream::parse_uuid(arguments.text("message"));
  if (!message)
    arguments.complain(Errc::invalid_request,
                       "message must be an id such as 01890a5d-ac96-774b-bcce-b302099a8057");
  return std::make_unique<WhyOperation>(look_of(ns, arguments),
                                        stream::MessageId{message.value_or(stream::Uuid{})});
}

std::unique_ptr<Operation> letters(const std::string& ns, Arguments& arguments) {
  return std::make_unique<LettersOperation>(look_of(ns, arguments), letters_of(arguments));
}

constexpr Verb kVerbs[] = {
    {"stream_status", Permission::query, kStatus, status,
     "The lanes of services: what waits, is held and is dead, and the age of what could be claimed",
     "StreamLanes"},
    {"stream_instances", Permission::query, kInstances, instances,
     "Instances of services, with their rank among the active ones and what they hold", "StreamInstances"},
    {"stream_lag", Permission::query, kLag, lag,
     "The streams whose messages have been there for longest, and what is the matter with each", "StreamLag"},
    {"stream_partitions", Permission::query, kPartitions, partitions,
     "The partitions with the most messages, and to whom each is offered first", "StreamPartitions"},
    {"stream_why", Permission::query, kWhy, why,
     "Why a message is not being handled: where it is, who is at work, and what is in its way", "StreamWhy"},
    {"stream_letters", Permission::query, kLetters, letters, "Dead letters, with all there is of them",
     "StreamLetters"},
};

}  // namespace

std::span<const Verb> stream_query_verbs() { return kVerbs; }

}  // namespace baton::server
