#include <concepts>
#include <sstream>

#include "core/event_codec.h"
#include "tests/model/reference_model.h"

namespace baton::model {

using namespace core;

namespace {

std::string in_words(const Reply& reply) {
  std::ostringstream out;
  std::visit(
      [&]<class R>(const R& r) {
        if constexpr (std::same_as<R, Submitted>) {
          out << "submitted " << to_text(r.task) << (r.existed ? " existed" : "");
        } else if constexpr (std::same_as<R, Granted>) {
          out << "granted " << to_text(r.task) << ' ' << to_text(r.lease) << " attempt " << r.attempt
              << " ttl " << r.ttl.ms << " payload " << r.payload.lsn << '+' << r.payload.offset << ':'
              << r.payload.length << '#' << r.payload.hash;
        } else if constexpr (std::same_as<R, Nothing>) {
          out << "nothing because " << int(r.why);
        } else if constexpr (std::same_as<R, Extended>) {
          out << "extended " << r.ttl.ms;
        } else if constexpr (std::same_as<R, ExtendedMany>) {
          out << "extended many:";
          for (const auto& item : r.items) {
            if (item) {
              out << ' ' << item->ttl.ms;
            } else {
              out << ' ' << word(item.error().code);
            }
          }
        } else if constexpr (std::same_as<R, Committed>) {
          out << "committed " << int(r.outcome) << " retry at " << r.retry_at.ms;
        } else if constexpr (std::same_as<R, Cancelled>) {
          out << "cancelled";
        } else if constexpr (std::same_as<R, Accepted>) {
          out << "accepted";
        } else if constexpr (std::same_as<R, Purged>) {
          out << "purged " << r.count;
        } else if constexpr (std::same_as<R, WorkProcessed>) {
          out << "work processed, " << r.work.size() << " handed out";
        }
      },
      reply);
  return out.str();
}

std::string in_words(const Event& event) {
  static constexpr char kDigits[] = "0123456789abcdef";
  Bytes bytes;
  encode(event, bytes);
  std::string text(name_of(type_of(event)));
  text += ' ';
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<unsigned>(byte) / 16];
    text += kDigits[static_cast<unsigned>(byte) % 16];
  }
  return text;
}

// The hash of what a key stands for: how it is made is not part of the rules.
Event without_content(Event event) {
  if (auto* created = std::get_if<TaskCreated>(&event); created && !created->key.empty())
    created->content = 0;
  return event;
}

}  // namespace

std::optional<std::string> difference(const std::optional<Event>& expected,
                                      const std::optional<Event>& actual) {
  const std::string wanted = expected ? in_words(without_content(*expected)) : "no entry";
  const std::string got = actual ? in_words(without_content(*actual)) : "no entry";
  if (wanted == got) return {};
  return "expected " + wanted + ", got " + got;
}

std::optional<std::string> difference(const Outcome& expected, const Decision& actual) {
  const auto* append = std::get_if<Append>(&actual);
  const auto* answer = std::get_if<Reply>(&actual);
  const auto* reject = std::get_if<Reject>(&actual);
  if (auto events = difference(expected.event, append ? std::optional(append->event) : std::nullopt))
    return events;
  const Reply* reply = append ? &append->reply : answer;
  const std::string wanted =
      expected.refusal ? "refusal " + std::string(word(*expected.refusal)) : in_words(*expected.reply);
  const std::string got = reject ? "refusal " + std::string(word(reject->code)) : in_words(*reply);
  if (wanted == got) return {};
  return "expected " + wanted + ", got " + got;
}

}  // namespace baton::model
