#include "cli/coordinator_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/output.h"
#include "cli/quantities.h"
#include "wire/resp_value.h"

namespace baton::cli {
namespace {

using wire::RespValue;

std::string ms(Duration time) { return std::to_string(time.ms); }

std::optional<std::string> cell_of(const RespValue& row, const Field& field) {
  const RespValue* found = row.find(field.said.empty() ? field.name : field.said);
  if (found == nullptr || found->type == RespValue::Type::null) return {};
  if (found->type == RespValue::Type::boolean) return found->truth ? "true" : "false";
  if (found->type != RespValue::Type::number) return found->text;
  if (field.shape == Shape::truth) return found->number != 0 ? "true" : "false";  // as version 2 has it
  return std::to_string(field.shape == Shape::seconds ? found->number / 1000 : found->number);
}

std::int64_t number_of(const RespValue& reply, std::string_view name) {
  const RespValue* found = reply.find(name);
  return found == nullptr ? 0 : found->number;
}

bool is_part(const RespValue& reply) {
  const RespValue* complete = reply.find("complete");
  return complete != nullptr && !complete->truth && complete->number == 0;
}

using Words = std::vector<std::string>;

constexpr std::size_t kNamedAtOnce = 1000;  // of the 1 024 that a coordinator takes

// The command for all letters, or one for each part of those named.
std::vector<Words> commands(const Words& words, const StreamSource::Letters& letters) {
  std::vector<Words> all{words};
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (i > 0 && i % kNamedAtOnce == 0) all.push_back(words);
    all.back().insert(all.back().end(), {"LETTER", letters[i]});
  }
  return all;
}

}  // namespace

Result<Rows> CoordinatorStreams::ask(const Words& words, std::string_view list,
                                     std::span<const Field> fields) {
  Rows rows;
  for (std::int64_t cursor = 0;;) {
    Words page = words;
    if (cursor != 0) page.insert(page.end(), {"CURSOR", std::to_string(cursor)});
    const auto reply = client_.ask(page);
    if (!reply) return std::unexpected(reply.error());
    const RespValue* found = reply->find(list);
    if (found == nullptr)
      return failure(Errc::unsupported_version, "the coordinator's reply is not understood");
    for (const RespValue& one : found->items) {
      Row& row = rows.emplace_back();
      for (const Field& field : fields) row.push_back(cell_of(one, field));
    }
    if (is_part(*reply)) {
      to_errors("baton: there are too many messages to look at all of them: this is of the oldest ones\n");
    }
    cursor = number_of(*reply, "cursor");
    if (cursor == 0) return rows;
  }
}

Result<std::uint64_t> CoordinatorStreams::act(const Words& words, const Letters& letters) {
  if (letters.empty()) return act_on_all(words);
  std::uint64_t total = 0;
  for (const Words& command : commands(words, letters)) {
    const auto reply = client_.ask(command);
    if (!reply && total > 0)
      return failure(reply.error().code, fmt::format("{} (done before that: {})", reply.error().message,
                                                     counted(total, "letter")));
    if (!reply) return std::unexpected(reply.error());
    total += static_cast<std::uint64_t>(number_of(*reply, "purged"));
  }
  return total;
}

Result<std::uint64_t> CoordinatorStreams::act_on_all(Words words) {
  for (std::uint64_t total = 0;;) {
    const auto reply = client_.ask(words);
    if (!reply) return std::unexpected(reply.error());
    const auto done = static_cast<std::uint64_t>(number_of(*reply, "purged"));
    total += done;
    if (done == 0) return total;
    // What dies while this goes on is left alone.
    const RespValue* last = reply->find("last_letter");
    if (total == done && last != nullptr)
      words.insert(words.end(), {"LAST_LETTER", std::to_string(last->number)});
  }
}

Result<Rows> CoordinatorStreams::lanes() { return ask({"STREAM_STATUS"}, "lanes", kLaneFields); }

Result<Rows> CoordinatorStreams::instances(Duration stale) {
  return ask({"STREAM_INSTANCES", "STALE_MS", ms(stale)}, "instances", kInstanceFields);
}

Result<Rows> CoordinatorStreams::lag(std::uint64_t count) {
  return ask({"STREAM_LAG", "COUNT", std::to_string(count)}, "streams", kLagFields);
}

Result<Rows> CoordinatorStreams::partitions(std::uint64_t count, Duration stale) {
  return ask({"STREAM_PARTITIONS", "COUNT", std::to_string(count), "STALE_MS", ms(stale)}, "partitions",
             kPartitionFields);
}

Result<Rows> CoordinatorStreams::why(const std::string& message, Duration stale) {
  return ask({"STREAM_WHY", message, "STALE_MS", ms(stale)}, "answers", kWhyFields);
}

Result<Rows> CoordinatorStreams::letters(const Letters& letters, std::span<const Field> fields) {
  Rows all;
  for (const Words& command : commands({"STREAM_LETTERS"}, letters)) {
    auto rows = ask(command, "letters", fields);
    if (!rows) return rows;
    std::ranges::move(*rows, std::back_inserter(all));
  }
  return all;
}

Result<std::uint64_t> CoordinatorStreams::replay(const Letters& letters) {
  return act({"STREAM_REPLAY"}, letters);
}

Result<std::uint64_t> CoordinatorStreams::purge(const Letters& letters, Duration older_than) {
  return act({"STREAM_PURGE", "OLDER_THAN_MS", ms(older_than)}, letters);
}

}  // namespace baton::cli
