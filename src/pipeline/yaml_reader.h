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

// What was found to be wrong with a file, and where.
class Complaints {
 public:
  Complaints(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}
  // The same of one place is told once, however many modules it is about.
  void add(const YamlPlace& place, const std::string& module, std::string message);
  std::string where(const YamlPlace& place) const;
  // Where a part of a value stands in the file; the value's place, if it is written there in another way.
  YamlPlace place_in(const Yaml& value, std::size_t at, std::string_view part) const;
  std::vector<Problem> all;
  std::size_t heard = 0;  // also those that were told before

 private:
  const std::string path_;
  const std::string text_;
  std::set<std::string> told_;
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
