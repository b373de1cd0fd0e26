#include "pipeline/yaml.h"

#include <yaml-cpp/yaml.h>

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <sstream>
#include <string_view>

namespace baton::pipeline {
namespace {

YamlPlace place_of(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

// Builds the tree from what the parser comes across. A map gets its keys and values in turn.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) complain(mark, "a second document; a file has one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_anchor(mark, anchor);
    add({.kind = Yaml::Kind::null, .place = place_of(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    complain(mark, "an alias (*name); use `defaults` for what modules have in common");
    result.is_whole = false;
    add({.place = place_of(mark)});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_anchor(mark, anchor);
    check_tag(mark, tag);
    check_quote(mark);
    add({.kind = Yaml::Kind::scalar, .place = place_of(mark), .text = value, .is_quoted = tag == "!"});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Yaml::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Yaml::Kind::map);
  }
  void OnMapEnd() override { close(); }

  YamlText result;

 private:
  struct Open {
    Yaml node;
    std::vector<Yaml> key;  // of a map: one that waits for its value
  };

  void complain(const YAML::Mark& mark, std::string message) {
    result.errors.push_back({place_of(mark), std::move(message)});
  }
  void check_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor)
      complain(mark, "an anchor (&name); use `defaults` for what modules have in common");
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      complain(mark, "a tag (" + tag + "); write the value plainly");
  }
  // The parser takes the end of the file for the end of a quote, and with it all that was to follow.
  void check_quote(const YAML::Mark& mark) const {
    if (!is_counted_in_bytes_) return;
    std::string_view rest = text_.substr(std::min(static_cast<std::size_t>(mark.pos), text_.size()));
    // A scalar with a tag begins with it.
    if (rest.starts_with('!'))
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n", 1), rest.size()));
    if (rest.empty() || (rest.front() != '"' && rest.front() != '\'')) return;
    const char quote = rest.front();
    for (std::size_t i = 1; i < rest.size(); ++i) {
      if (quote == '"' && rest[i] == '\\')
        ++i;
      else if (rest[i] == quote && !(quote == '\'' && rest.substr(i + 1).starts_with(quote)))
        return;
      else if (rest[i] == quote)
        ++i;
    }
    throw YAML::ParserException(mark, "this quote is not closed");
  }
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Yaml::Kind kind) {
    check_anchor(mark, anchor);
    check_tag(mark, tag);
    if (open_.size() == kYamlDepthMax) throw YAML::ParserException(mark, "more than 32 levels deep");
    open_.push_back({{.kind = kind, .place = place_of(mark)}, {}});
  }
  void close() {
    Yaml done = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(done));
  }
  void add(Yaml node) {
    if (open_.empty()) {
      if (documents_ == 1) result.root = std::move(node);
      return;
    }
    Open& in = open_.back();
    if (in.node.kind == Yaml::Kind::list) {
      in.node.items.push_back(std::move(node));
    } else if (in.key.empty()) {
      in.key.push_back(std::move(node));
    } else {
      add_field(in, std::move(node));
    }
  }
  void add_field(Open& in, Yaml value) {
    Yaml key = std::move(in.key.front());
    in.key.clear();
    if (key.kind != Yaml::Kind::scalar) {
      result.errors.push_back({key.place, "a key has to be plain text"});
      result.is_whole = false;
    } else if (in.node.find(key.text) != nullptr) {
      result.errors.push_back({key.place, "'" + key.text + "' is there twice"});
    } else {
      in.node.fields.emplace_back(std::move(key), std::move(value));
    }
  }

  const std::string_view text_;                             // as the parser counts it
  const bool is_counted_in_bytes_ = !text_.contains('\0');  // UTF-16 and UTF-32 are not
  int documents_ = 0;
  std::vector<Open> open_;
};

// Counted from 0.
bool is_indented_with_tab(std::string_view text, int line) {
  for (; line > 0; --line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find_first_not_of(" \t")).contains('\t');
}

}  // namespace

const Yaml* Yaml::find(std::string_view key) const {
  const auto found = std::ranges::find_if(fields, [&](const auto& field) { return field.key.text == key; });
  return found == fields.end() ? nullptr : &found->value;
}

YamlText parse_yaml(const std::string& text) {
  if (text.size() > kYamlBytesMax) return {.errors = {{{}, "more than a megabyte"}}, .is_whole = false};
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::string_view counted = text;
  if (counted.starts_with(kByteOrderMark)) counted.remove_prefix(kByteOrderMark.size());
  Builder builder(counted);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& trouble) {
    const bool has_tab = is_indented_with_tab(counted, trouble.mark.line);
    builder.result.errors.push_back(
        {place_of(trouble.mark),
         trouble.msg + (has_tab ? "; this line is indented with a tab, and YAML takes spaces only" : "")});
    builder.result.is_whole = false;
  }
  return std::move(builder.result);
}

}  // namespace baton::pipeline
