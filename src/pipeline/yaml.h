// YAML as pipeline files use it: maps, lists and scalars, each with the place where it stands. What often
// surprises is refused: anchors, tags, duplicate keys, several documents.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace baton::pipeline {

struct YamlPlace {
  int line = 1;
  int column = 1;
};

struct Yaml {
  enum class Kind : unsigned char { null, scalar, list, map } kind = Kind::null;
  YamlPlace place;
  std::string text;  // of a scalar
  bool is_quoted = false;
  std::vector<Yaml> items;
  struct Field;
  std::vector<Field> fields;  // keys are scalars, each once

  const Yaml* find(std::string_view key) const;
};

struct Yaml::Field {
  Yaml key;
  Yaml value;
};

struct YamlError {
  YamlPlace place;
  std::string message;
};

inline constexpr std::size_t kYamlBytesMax = 1 << 20;
inline constexpr std::size_t kYamlDepthMax = 32;

struct YamlText {
  Yaml root;
  std::vector<YamlError> errors;
  bool is_whole = true;  // false: something of it is missing in the tree, because of one of the errors
};
// All that is wrong, up to what cannot be read at all.
YamlText parse_yaml(const std::string& text);

}  // namespace baton::pipeline
