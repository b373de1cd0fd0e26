// Takes values out of YAML, one key at a time, and notes what is wrong: of another kind than it should be,
// not known, out of range.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "pipeline/graph.h"
#include "pipeline/yaml.h"

namespace baton::pipeline {

// What was found to be wrong, with where.
class Complaints {
 public:
  explicit Complaints(std::string path) : path_(std::move(path)) {}
  void add(const YamlPlace& place, const std::string& module, std::string message);
  std::string where(const YamlPlace& place) const;
  std::vector<Problem> all;

 private:
  const std::string path_;
};

// One map. Each key is asked for by name; finish() complains about those nobody asked for.
class YamlMap {
 public:
  // `fallback` is where keys are looked for that the map itself does not have; may be null.
  YamlMap(const Yaml& node, Complaints& complaints, std::string module = {}, const Yaml* fallback = nullptr);

  const Yaml* take(const char* key);
  const Yaml* map(const char* key);  // one that is a map; null: there is none, or it was complained of
  std::optional<std::string> text(const char* key);
  std::vector<std::string> texts(const char* key);  // one, or a list
  std::optional<bool> boolean(const char* key);
  std::optional<std::uint32_t> number(const char* key, std::uint32_t min, std::uint32_t max);
  std::optional<Duration> duration(const char* key);
  std::map<std::string, std::string> texts_by_name(const char* key);
  // The index among `words`.
  std::optional<std::size_t> choice(const char* key, const std::vector<std::string>& words);
  void finish();
  void finish_fallback();  // for the fallback, by what was asked for here

  void complain(const Yaml& node, std::string message) {
    complaints_.add(node.place, module_, std::move(message));
  }
  std::optional<std::string> text_of(const Yaml& node, const std::string& what);
  std::vector<std::string> texts_of(const Yaml& node, const std::string& what);

 private:
  const Yaml& node_;
  Complaints& complaints_;
  const std::string module_;
  const Yaml* const fallback_;
  void complain_of_others(const Yaml& node, const std::string& module);

  std::vector<std::string> known_;
};

}  // namespace baton::pipeline
