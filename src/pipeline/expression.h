// What stands in a pipeline file for a value that is known only later: ${params.config},
// ${needs.build.outputs.version}, and conditions over such.
//
//   condition := or            or := and ( "||" and )*          and := not ( "&&" not )*
//   not := "!" not | equality  equality := value ( ("==" | "!=") value )?
//   value := "text" | 'text' | word | ${reference} | success(id) | failed(id) | exists(path) | "(" condition
//   ")"
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::pipeline {

// ${root.rest}, or ${root.rest:-otherwise}; a name without a dot is the shell's.
struct Reference {
  std::string root;
  std::string rest;
  std::size_t at = 0;  // in the text
  std::optional<std::string> otherwise = {};
};
std::string spelled(const Reference& reference);  // as it stands in the text
// All that the text refers to, whether or not there is such a thing.
std::vector<Reference> references_in(std::string_view text);
// What is wrong with it whatever the pipeline: it could be none of the shell's either. Empty: nothing.
std::string trouble_with(const Reference& reference);

using Resolve = std::function<Result<std::string>(const Reference&)>;
// The text with every reference replaced.
Result<std::string> substitute(std::string_view text, const Resolve& resolve);

// The functions a condition may ask.
struct Asked {
  std::string function;  // success, failed, exists
  std::string argument;
};
struct ConditionParts {
  std::vector<Reference> references;
  std::vector<Asked> asked;
};
// What a condition looks at, or what is wrong with it.
Result<ConditionParts> parts_of_condition(std::string_view text);
// A text counts as true unless it is empty, "false" or "0".
Result<bool> evaluate(std::string_view text, const Resolve& resolve,
                      const std::function<Result<bool>(const Asked&)>& ask);

}  // namespace baton::pipeline
