// Text where marks mean something: in HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace baton::pipeline {

inline std::string escaped(std::string_view text) {
  std::string all;
  for (const char c : text) {
    switch (c) {
      case '<': all += "&lt;"; break;
      case '>': all += "&gt;"; break;
      case '&': all += "&amp;"; break;
      case '"': all += "&quot;"; break;
      default: all += c;
    }
  }
  return all;
}

}  // namespace baton::pipeline
