// What is said on standard error, and what is shown on standard output while work goes on. What cannot be
// said is not said: fmt::print would throw, on threads too where nobody catches it, and the work would end
// with it. main() still tells by its exit code that standard output has not got everything.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace baton::cli {

template <class... Values>
void to_errors(fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

template <class... Values>
void to_output(fmt::format_string<Values...> format, Values&&... values) {
  const std::string text = fmt::format(format, std::forward<Values>(values)...);
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace baton::cli
