#include "cli/stream_report.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "cli/json_object.h"
#include "cli/quantities.h"
#include "cli/table.h"

namespace baton::cli {
namespace {

std::int64_t number_in(const std::string& text) { return std::atoll(text.c_str()); }

std::string cell_of(const Field& field, const std::optional<std::string>& value) {
  if (field.shape == Shape::truth) return value == "true" ? "yes" : "";
  if (!value || value->empty()) return "-";
  if (field.shape == Shape::seconds)
    return number_in(*value) == 0 ? "0s" : rough_text(seconds(number_in(*value)));
  return printable(*value, 100);
}

void add_member(JsonObject& object, const Field& field, const std::optional<std::string>& value) {
  if (!value) {
    object.literal(field.name, "null");
  } else if (field.shape == Shape::text) {
    object.text(field.name, *value);
  } else {
    object.literal(field.name, value->empty() ? "null" : *value);
  }
}

std::string label(std::string_view name, const std::optional<std::string>& value) {
  std::string escaped;
  for (const char letter : value.value_or("")) {
    if (letter == '"' || letter == '\\' || letter == '\n') escaped += '\\';
    escaped += letter == '\n' ? 'n' : letter;
  }
  return fmt::format("{}=\"{}\"", name, escaped);
}

void print_metric(std::string_view name, std::string_view about) {
  fmt::print("# HELP baton_stream_{} {}\n# TYPE baton_stream_{} gauge\n", name, about, name);
}

// One line for each lane and state; the states stand in these fields.
void print_states(std::string_view name, const Rows& lanes,
                  std::span<const std::pair<std::string_view, std::size_t>> states) {
  for (const Row& lane : lanes) {
    for (const auto& [state, field] : states)
      fmt::print("baton_stream_{}{{{},{},state=\"{}\"}} {}\n", name, label("service", lane[0]),
                 label("lane", lane[1]), state, lane[field].value_or("0"));
  }
}

}  // namespace

void print_table(std::span<const Field> fields, const Rows& rows) {
  std::vector<Column> columns;
  for (const Field& field : fields) {
    const bool is_text = field.shape == Shape::text || field.shape == Shape::truth;
    if (!field.heading.empty())
      columns.push_back({std::string(field.heading), is_text ? Align::left : Align::right});
  }
  Table table(std::move(columns));
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (!fields[i].heading.empty()) cells.push_back(cell_of(fields[i], row[i]));
    }
    table.row(std::move(cells));
  }
  table.print();
}

void print_json(std::span<const Field> fields, const Rows& rows) {
  for (const Row& row : rows) {
    JsonObject object;
    for (std::size_t i = 0; i < fields.size(); ++i) add_member(object, fields[i], row[i]);
    fmt::print("{}\n", object.whole());
  }
}

void print_metrics(const Rows& lanes, const Rows& instances, const Rows& partitions) {
  constexpr std::pair<std::string_view, std::size_t> kMessages[] = {{"waiting", 2}, {"held", 3}, {"dead", 4}};
  constexpr std::pair<std::string_view, std::size_t> kStreams[] = {{"all", 5}, {"held", 6}, {"parked", 7}};
  print_metric("messages", "Messages by what is happening to them");
  print_states("messages", lanes, kMessages);
  print_metric("streams", "Streams that have messages");
  print_states("streams", lanes, kStreams);
  print_metric("oldest_claimable_seconds",
               "For how long the oldest message has waited that could be claimed");
  for (const Row& lane : lanes)
    fmt::print("baton_stream_oldest_claimable_seconds{{{},{}}} {}\n", label("service", lane[0]),
               label("lane", lane[1]), lane[8].value_or("0"));
  std::map<std::string, int> counts;
  for (const Row& lane : lanes) counts[label("service", lane[0]) + ",state=\"active\""];  // 0 is for alerts
  for (const Row& one : instances)
    ++counts[fmt::format("{},state=\"{}\"", label("service", one[0]), one[6] == "true" ? "stale" : "active")];
  print_metric("instances", "Instances that have called");
  for (const auto& [labels, count] : counts) fmt::print("baton_stream_instances{{{}}} {}\n", labels, count);
  print_metric("partition_messages", "Messages of the partitions that have the most");
  for (const Row& one : partitions)
    fmt::print("baton_stream_partition_messages{{{},{},{}}} {}\n", label("service", one[0]),
               label("lane", one[1]), label("partition", one[2]), one[4].value_or("0"));
}

}  // namespace baton::cli
