#include "pipeline/expression.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "pipeline/similar.h"

namespace baton::pipeline {
namespace {

const std::vector<std::string> kRoots = {"params", "env", "vars", "matrix", "needs", "run"};
const std::vector<std::string> kFunctions = {"success", "failed", "exists"};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == '/';
}

// The reference that begins at `at`, where "${" stands; nothing, if it is the shell's.
std::optional<Reference> reference_at(std::string_view text, std::size_t at) {
  const std::size_t end = text.find('}', at);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view inside = text.substr(at + 2, end - at - 2);
  std::optional<std::string> otherwise;
  if (const std::size_t colon = inside.find(":-"); colon != std::string_view::npos) {
    otherwise = inside.substr(colon + 2);
    inside = inside.substr(0, colon);
  }
  const std::size_t dot = inside.find('.');
  const bool is_plain =
      std::ranges::all_of(inside, [](char c) { return is_word(c) || c == '[' || c == ']' || c == ','; });
  if (dot == std::string_view::npos || dot == 0 || !is_plain) return std::nullopt;
  return Reference{std::string(inside.substr(0, dot)), std::string(inside.substr(dot + 1)), at,
                   std::move(otherwise)};
}

struct Piece {
  std::string_view literal;
  std::optional<Reference> reference;
};
std::vector<Piece> pieces_of(std::string_view text) {
  std::vector<Piece> pieces;
  std::size_t from = 0;
  for (std::size_t at = 0; (at = text.find("${", at)) != std::string_view::npos;) {
    auto reference = reference_at(text, at);
    if (!reference) {
      at += 2;
      continue;
    }
    pieces.push_back({text.substr(from, at - from), std::move(reference)});
    from = at = text.find('}', at) + 1;
  }
  pieces.push_back({text.substr(from), std::nullopt});
  return pieces;
}

bool is_true(std::string_view value) { return !value.empty() && value != "false" && value != "0"; }
std::string truth(bool value) { return value ? "true" : "false"; }

// Reads a condition from left to right. What it looks at is asked as it is met; the first error ends it.
class Condition {
 public:
  Condition(std::string_view text, const Resolve& resolve,
            const std::function<Result<bool>(const Asked&)>& ask)
      : text_(text), resolve_(resolve), ask_(ask) {}

  Result<bool> run() {
    const std::string value = disjunction();
    skip_spaces();
    if (!error_ && at_ != text_.size())
      complain("'" + std::string(text_.substr(at_, 10)) + "' is too much" +
               (text_[at_] == '=' ? ": values are compared with ==" : ""));
    if (error_) return std::unexpected(*error_);
    return is_true(value);
  }

 private:
  void complain(std::string message) {
    if (!error_) error_ = Error{Errc::invalid_request, std::move(message)};
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(std::string_view symbol) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }

  std::string disjunction() {
    std::string value = conjunction();
    while (!error_ && take("||")) {
      const std::string other = conjunction();
      value = truth(is_true(value) || is_true(other));
    }
    return value;
  }
  std::string conjunction() {
    std::string value = negation();
    while (!error_ && take("&&")) {
      const std::string other = negation();
      value = truth(is_true(value) && is_true(other));
    }
    return value;
  }
  std::string negation() {
    skip_spaces();
    if (text_.substr(at_).starts_with("!") && !text_.substr(at_).starts_with("!=")) {
      ++at_;
      if (++depth_ > kDepthMax) return complain("too deep"), "";
      std::string value = truth(!is_true(negation()));
      --depth_;
      return value;
    }
    std::string value = operand();
    if (take("==")) return truth(value == operand());
    if (take("!=")) return truth(value != operand());
    return value;
  }

  std::string operand() {
    skip_spaces();
    if (error_) return {};
    if (at_ == text_.size()) return complain("something is missing at the end"), "";
    if (take("(")) {
      if (++depth_ > kDepthMax) return complain("too deep"), "";
      std::string value = disjunction();
      --depth_;
      if (!take(")")) complain("a ) is missing");
      return value;
    }
    const char c = text_[at_];
    if (c == '"' || c == '\'') return quoted(c);
    if (c == '$') return referred();
    if (is_word(c)) return word_or_function();
    complain("'" + std::string(1, c) + "' cannot stand here");
    return {};
  }
  std::string quoted(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return complain("a quotation mark is missing"), "";
    const std::size_t begin = std::exchange(at_, end + 1) + 1;
    return substituted(begin, end);
  }
  std::string substituted(std::size_t begin, std::size_t end) {
    auto value = substitute(text_.substr(begin, end - begin), [&](Reference reference) {
      reference.at += begin;
      return resolve_(reference);
    });
    if (!value) return complain(value.error().message), "";
    return std::move(*value);
  }
  std::string referred() {
    auto reference = reference_at(text_, at_);
    if (!reference) return complain("${…} refers to params, env, vars, matrix, needs or run here"), "";
    at_ = text_.find('}', at_) + 1;
    auto value = resolve_(*reference);
    if (!value) return complain(value.error().message), "";
    return std::move(*value);
  }
  std::string word_or_function() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    std::string word(text_.substr(begin, at_ - begin));
    if (!take("(")) return word;
    const Asked asked{word, argument_of(word)};
    if (!take(")")) complain("a ) is missing behind " + word + "(");
    if (error_) return {};
    if (std::ranges::find(kFunctions, word) == kFunctions.end()) {
      return complain("there is no " + word + "()" + suggestion(word, kFunctions)), "";
    }
    auto answer = ask_(asked);
    if (!answer) return complain(answer.error().message), "";
    return truth(*answer);
  }

  // A path as it is; the name of a module has no spaces in it.
  std::string argument_of(const std::string& function) {
    skip_spaces();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) return quoted(text_[at_]);
    const std::size_t begin = std::exchange(at_, std::min(text_.find(')', at_), text_.size()));
    std::size_t end = at_;
    while (end > begin && text_[end - 1] == ' ') --end;
    if (function == "exists") return substituted(begin, end);
    std::string name(text_.substr(begin, end - begin));
    std::erase(name, ' ');
    return name;
  }

  static constexpr int kDepthMax = 64;
  const std::string_view text_;
  const Resolve& resolve_;
  const std::function<Result<bool>(const Asked&)>& ask_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace

std::string spelled(const Reference& reference) {
  return "${" + reference.root + "." + reference.rest +
         (reference.otherwise ? ":-" + *reference.otherwise : "") + "}";
}

std::vector<Reference> references_in(std::string_view text) {
  std::vector<Reference> all;
  for (Piece& piece : pieces_of(text)) {
    if (piece.reference) all.push_back(std::move(*piece.reference));
  }
  return all;
}

std::string trouble_with(const Reference& reference) {
  if (std::ranges::find(kRoots, reference.root) == kRoots.end())
    return spelled(reference) + ": there is no '" + reference.root + "'" + suggestion(reference.root, kRoots);
  if (reference.rest.empty()) return spelled(reference) + ": a name is missing behind the dot";
  if (reference.otherwise && reference.root != "env")
    return spelled(reference) + ": only variables may have a default here, as ${env.NAME:-default}";
  if (reference.otherwise && reference.otherwise->find("${") != std::string::npos)
    return spelled(reference) + ": a default is plain text";
  return {};
}

Result<std::string> substitute(std::string_view text, const Resolve& resolve) {
  std::string result;
  for (const Piece& piece : pieces_of(text)) {
    result += piece.literal;
    if (!piece.reference) continue;
    auto value = resolve(*piece.reference);
    if (!value) return value;
    result += *value;
  }
  return result;
}

Result<ConditionParts> parts_of_condition(std::string_view text) {
  ConditionParts parts;
  const Resolve note = [&](const Reference& reference) -> Result<std::string> {
    parts.references.push_back(reference);
    return std::string();
  };
  const std::function<Result<bool>(const Asked&)> ask = [&](const Asked& asked) -> Result<bool> {
    parts.asked.push_back(asked);
    return false;
  };
  if (auto read = Condition(text, note, ask).run(); !read) return std::unexpected(read.error());
  return parts;
}

Result<bool> evaluate(std::string_view text, const Resolve& resolve,
                      const std::function<Result<bool>(const Asked&)>& ask) {
  return Condition(text, resolve, ask).run();
}

}  // namespace baton::pipeline
