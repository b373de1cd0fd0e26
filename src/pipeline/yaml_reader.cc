#include "pipeline/yaml_reader.h"

#include <algorithm>
#include <charconv>

#include "pipeline/similar.h"

namespace baton::pipeline {
namespace {

std::string_view kind_of(const Yaml& node) {
  static constexpr std::string_view kKinds[] = {"nothing", "text", "a list", "a map"};
  return kKinds[static_cast<std::size_t>(node.kind)];
}

std::optional<Duration> read_duration(std::string_view text) {
  static constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  std::int64_t total = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc{} || count < 0 || count > 1'000'000'000) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::size_t letters = std::min(text.size(), text.find_first_of("0123456789"));
    const auto unit =
        std::ranges::find(kUnits, text.substr(0, letters), &std::pair<std::string_view, std::int64_t>::first);
    if (unit == std::end(kUnits)) return std::nullopt;
    total += count * unit->second;
    text.remove_prefix(letters);
  }
  return Duration{total};
}

}  // namespace

std::string Complaints::where(const YamlPlace& place) const {
  return path_ + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

void Complaints::add(const YamlPlace& place, const std::string& module, std::string message) {
  ++heard;
  if (told_.insert(where(place) + ": " + message).second)
    all.push_back({module, where(place), std::move(message)});
}

YamlPlace Complaints::place_in(const Yaml& value, std::size_t at, std::string_view part) const {
  std::size_t line_begin = 0;
  for (int line = 1; line < value.place.line; ++line) line_begin = text_.find('\n', line_begin) + 1;
  std::size_t found = line_begin + static_cast<std::size_t>(value.place.column - 1);
  // The value may have the part several times; it has them in the same order in the file.
  for (std::size_t from = 0; (from = value.text.find(part, from)) < at; ++from)
    found = std::min(text_.find(part, found), text_.size() - 1) + 1;
  found = text_.find(part, found);
  if (found == std::string::npos) return value.place;
  const std::string_view before = std::string_view(text_).substr(0, found);
  const auto lines = std::ranges::count(before, '\n');
  return {static_cast<int>(lines) + 1, static_cast<int>(found - (before.rfind('\n') + 1)) + 1};
}

YamlMap::YamlMap(const Yaml& node, Complaints& complaints, std::string module, const Yaml* fallback)
    : node_(node), complaints_(complaints), module_(std::move(module)), fallback_(fallback) {
  if (node.kind != Yaml::Kind::map && node.kind != Yaml::Kind::null)
    complain(node, "here a map is expected, and this is " + std::string(kind_of(node)));
}

const Yaml* YamlMap::take(const char* key) {
  known_.emplace_back(key);
  if (const Yaml* own = node_.find(key)) return own;
  return fallback_ != nullptr ? fallback_->find(key) : nullptr;
}

const Yaml* YamlMap::map(const char* key) {
  const Yaml* node = take(key);
  if (node == nullptr || node->kind == Yaml::Kind::map) return node;
  complain(*node, std::string(key) + " has to be a map, and this is " + std::string(kind_of(*node)));
  return nullptr;
}

std::optional<std::string> YamlMap::text_of(const Yaml& node, const std::string& what) {
  if (node.kind == Yaml::Kind::scalar) return node.text;
  complain(node, what + " has to be text, and this is " + std::string(kind_of(node)));
  return std::nullopt;
}

std::vector<std::string> YamlMap::texts_of(const Yaml& node, const std::string& what) {
  std::vector<std::string> all;
  if (node.kind != Yaml::Kind::list) {
    if (auto one = text_of(node, what)) all.push_back(std::move(*one));
    return all;
  }
  for (const Yaml& item : node.items) {
    if (auto one = text_of(item, "an item of " + what)) all.push_back(std::move(*one));
  }
  return all;
}

std::optional<std::string> YamlMap::text(const char* key) {
  const Yaml* node = take(key);
  return node != nullptr ? text_of(*node, key) : std::nullopt;
}

std::vector<std::string> YamlMap::texts(const char* key) {
  const Yaml* node = take(key);
  return node != nullptr ? texts_of(*node, key) : std::vector<std::string>();
}

std::optional<bool> YamlMap::boolean(const char* key) {
  const Yaml* node = take(key);
  if (node == nullptr) return std::nullopt;
  if (node->kind == Yaml::Kind::scalar && !node->is_quoted && (node->text == "true" || node->text == "false"))
    return node->text == "true";
  complain(*node, std::string(key) + " has to be true or false");
  return std::nullopt;
}

std::optional<std::uint32_t> YamlMap::number(const char* key, std::uint32_t min, std::uint32_t max) {
  const Yaml* node = take(key);
  if (node == nullptr) return std::nullopt;
  std::uint32_t value = 0;
  const char* const end = node->text.data() + node->text.size();
  const auto [stopped, error] = std::from_chars(node->text.data(), end, value);
  if (node->kind == Yaml::Kind::scalar && error == std::errc{} && stopped == end && value >= min &&
      value <= max)
    return value;
  const std::string least = std::to_string(min);
  const std::string range = min == max ? least : "a number from " + least + " to " + std::to_string(max);
  complain(*node, std::string(key) + " has to be " + range);
  return std::nullopt;
}

std::optional<Duration> YamlMap::duration(const char* key) {
  const Yaml* node = take(key);
  if (node == nullptr) return std::nullopt;
  if (node->kind == Yaml::Kind::scalar) {
    if (auto duration = read_duration(node->text)) return duration;
  }
  complain(*node, std::string(key) + " has to be a time with its unit, as 30s, 5m or 1h30m");
  return std::nullopt;
}

std::map<std::string, std::string> YamlMap::texts_by_name(const char* key) {
  std::map<std::string, std::string> all;
  const Yaml* node = take(key);
  if (node == nullptr) return all;
  if (node->kind != Yaml::Kind::map) {
    complain(*node, std::string(key) + " has to be a map of names and values");
    return all;
  }
  for (const auto& [name, value] : node->fields) {
    if (auto text = text_of(value, std::string(key) + "." + name.text)) all[name.text] = std::move(*text);
  }
  return all;
}

std::optional<std::size_t> YamlMap::choice(const char* key, const std::vector<std::string>& words) {
  const Yaml* node = take(key);
  if (node == nullptr) return std::nullopt;
  const auto found = std::ranges::find(words, node->text);
  if (node->kind == Yaml::Kind::scalar && found != words.end())
    return static_cast<std::size_t>(found - words.begin());
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  complain(*node, std::string(key) + " has to be one of " + list);
  return std::nullopt;
}

void YamlMap::finish() { complain_of_others(node_, module_); }

void YamlMap::finish_fallback() {
  if (fallback_ != nullptr) complain_of_others(*fallback_, {});
}

void YamlMap::complain_of_others(const Yaml& node, const std::string& module) {
  for (const auto& [key, value] : node.fields) {
    if (std::ranges::find(known_, key.text) != known_.end()) continue;
    complaints_.add(key.place, module,
                    "there is no key '" + key.text + "' here" + suggestion(key.text, known_));
  }
}

}  // namespace baton::pipeline
