// What `baton stream` shows: rows with named fields, the same whether a database or a coordinator was asked.
// For people they are a table, for programs a line of JSON each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::cli {

enum class Shape : std::uint8_t { text, number, seconds, truth, json };

struct Field {
  std::string_view name;  // of the column in a database, and of the member of JSON
  Shape shape = Shape::text;
  std::string_view heading;  // in the table; empty: it is not shown there
  std::string_view said;     // what a coordinator calls it; empty: the same. Times are said in milliseconds
};

using Row = std::vector<std::optional<std::string>>;  // as text, in the order of the fields; none: not known
using Rows = std::vector<Row>;

inline constexpr Field kLaneFields[] = {
    {"service", Shape::text, "SERVICE", ""},
    {"lane", Shape::text, "LANE", ""},
    {"waiting", Shape::number, "WAITING", ""},
    {"held", Shape::number, "HELD", ""},
    {"dead", Shape::number, "DEAD", ""},
    {"streams", Shape::number, "STREAMS", ""},
    {"held_streams", Shape::number, "HELD STREAMS", ""},
    {"parked_streams", Shape::number, "PARKED STREAMS", ""},
    {"oldest_claimable_seconds", Shape::seconds, "OLDEST", "oldest_claimable_ms"},
};
inline constexpr Field kInstanceFields[] = {
    {"service", Shape::text, "SERVICE", ""},
    {"instance", Shape::text, "INSTANCE", ""},
    {"rank", Shape::number, "RANK", ""},
    {"host", Shape::text, "HOST", ""},
    {"process", Shape::number, "PROCESS", ""},
    {"silent_seconds", Shape::seconds, "SILENT", "silent_ms"},
    {"is_stale", Shape::truth, "STALE", ""},
    {"held_streams", Shape::number, "STREAMS", ""},
    {"held_messages", Shape::number, "MESSAGES", ""},
};
inline constexpr Field kLagFields[] = {
    {"service", Shape::text, "SERVICE", ""},
    {"lane", Shape::text, "LANE", ""},
    {"stream", Shape::text, "STREAM", ""},
    {"partition_number", Shape::number, "PARTITION", "partition"},
    {"messages", Shape::number, "MESSAGES", ""},
    {"waits_seconds", Shape::seconds, "WAITS", "waits_ms"},
    {"state", Shape::text, "STATE", ""},
};
inline constexpr Field kPartitionFields[] = {
    {"service", Shape::text, "SERVICE", ""},
    {"lane", Shape::text, "LANE", ""},
    {"partition_number", Shape::number, "PARTITION", "partition"},
    {"streams", Shape::number, "STREAMS", ""},
    {"messages", Shape::number, "MESSAGES", ""},
    {"oldest_claimable_seconds", Shape::seconds, "OLDEST", "oldest_claimable_ms"},
    {"offered_to", Shape::text, "OFFERED TO", ""},
};
inline constexpr Field kWhyFields[] = {
    {"question", Shape::text, "", ""},
    {"answer", Shape::text, "", ""},
};
inline constexpr Field kLetterFields[] = {
    {"dead_letter_id", Shape::number, "LETTER", "letter"},
    {"service", Shape::text, "SERVICE", ""},
    {"lane", Shape::text, "LANE", ""},
    {"message_id", Shape::text, "MESSAGE", "message"},
    {"stream_id", Shape::text, "", "stream"},
    {"message_type", Shape::text, "TYPE", "type"},
    {"failures", Shape::number, "FAILURES", ""},
    {"deliveries", Shape::number, "", ""},
    {"dead_seconds", Shape::seconds, "SINCE", "dead_ms"},
    {"error", Shape::text, "ERROR", ""},
    {"target", Shape::text, "", ""},
    {"envelope_type", Shape::text, "", ""},
    {"partition_number", Shape::number, "", "partition"},
    {"seq", Shape::number, "", "sequence"},
    {"status", Shape::number, "", ""},
    {"failure_reason", Shape::number, "", "reason"},
    {"parks_stream", Shape::truth, "", ""},
    {"dead_lettered_by", Shape::text, "", "instance"},
    {"event_data", Shape::json, "", "data"},
    {"metadata", Shape::json, "", ""},
    {"scope", Shape::json, "", ""},
};
// A list has no more than these, whatever the letters have in them; all are there for a letter that is to be
// shown.
inline constexpr std::span<const Field> kLetterSummary = std::span(kLetterFields).first(10);
inline constexpr std::span<const Field> kLetterNumber = std::span(kLetterFields).first(1);

void print_table(std::span<const Field> fields, const Rows& rows);
void print_json(std::span<const Field> fields, const Rows& rows);
// The lanes and instances of services, and the heaviest partitions, as text for Prometheus.
void print_metrics(const Rows& lanes, const Rows& instances, const Rows& partitions);

}  // namespace baton::cli
