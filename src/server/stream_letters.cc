#include "server/stream_letters.h"

#include <charconv>
#include <utility>

#include "stream/body.h"

namespace baton::server {
namespace {

void write_letter(ReplyWriter& reply, const core::LetterView& letter, const stream::Work& texts) {
  const core::streams::Message& message = letter.message;
  reply.map(letter.stream ? 21 : 18);
  reply.member("letter", letter.number);
  reply.member("service", letter.service);
  reply.member("lane", letter.lane == stream::Lane::outbox ? "outbox" : "inbox");
  reply.member("message", stream::to_text(message.id.value));
  if (letter.stream) {
    reply.member("stream", stream::to_text(letter.stream->value));
    reply.name("partition"), reply.number(letter.partition);
    reply.member("sequence", message.seq);
  }
  reply.member("target", texts.target);
  reply.member("type", texts.type);
  reply.member("envelope_type", texts.envelope_type);
  reply.member("data", texts.data);
  reply.member("metadata", texts.metadata);
  reply.member("scope", texts.scope);
  reply.name("status"), reply.number(message.status);
  reply.member("deliveries", message.deliveries);
  reply.member("failures", message.failures);
  reply.name("reason"), reply.number(message.reason);
  reply.member("error", texts.error);
  reply.name("parks_stream"), reply.boolean(letter.parks);
  reply.name("dead_ms"), reply.number(letter.dead_for.ms);
  reply.member("instance", stream::to_text(letter.by.value));
}

}  // namespace

std::vector<std::uint64_t> letters_of(Arguments& arguments) {
  std::vector<std::uint64_t> letters;
  for (const std::string_view text : arguments.all("letter")) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size())
      arguments.complain(Errc::invalid_request, "letter must be a number");
    letters.push_back(number);
  }
  return letters;
}

void LettersOperation::look(engine::Engine& engine) {
  look_.now = engine.now();
  page_ = core::letters(engine.state(), look_, named_);
  lsn_ = engine.state().last;
}

void LettersOperation::looked(Desk& desk) {
  texts_.assign(page_.rows.size(), {});
  for (std::size_t i = 0; i < page_.rows.size(); ++i) {
    desk.fetch(*this, second_look_.index_of(2 * i), page_.rows[i].message.body);
    if (page_.rows[i].message.error.length > 0)
      desk.fetch(*this, second_look_.index_of(2 * i + 1), page_.rows[i].message.error);
  }
}

void LettersOperation::fetched(Desk& desk, std::size_t index, Result<Bytes> bytes) {
  if (second_look_.is_outdated(index)) return;
  if (second_look_.is_due(bytes)) return desk.look(*this);
  const std::size_t part = SecondLook::part_of(index);
  (part % 2 == 0 ? texts_[part / 2].body : texts_[part / 2].error) = std::move(bytes);
}

void LettersOperation::write(ReplyWriter& reply) {
  reply.map(3);
  reply.member("lsn", lsn_);
  reply.name("letters");
  reply.list(page_.rows.size());
  for (std::size_t i = 0; i < page_.rows.size(); ++i) {
    stream::Work texts;
    if (!texts_[i].body || !texts_[i].error) {
      reply.error(texts_[i].body ? texts_[i].error.error() : texts_[i].body.error());
    } else if (!stream::read_body(*texts_[i].body, texts)) {
      reply.error({Errc::corrupt, "the body of a dead letter cannot be read"});
    } else {
      texts.error = text_of(*texts_[i].error);
      write_letter(reply, page_.rows[i], texts);
    }
  }
  reply.member("cursor", page_.next);
}

}  // namespace baton::server
