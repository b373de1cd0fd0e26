// Bytes that are pinned in tests/golden, as text that a diff can show. BATON_UPDATE_GOLDEN=1 writes the files
// anew; do that only together with a new format version, and under a new name: the old ones stay readable.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "base/bytes.h"

namespace baton {

// "offset  sixteen bytes in hex", without the lines that are all zeros, then the length.
inline std::string hex_dump(ByteView bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 16) {
    const ByteView line = bytes.subspan(at, std::min<std::size_t>(16, bytes.size() - at));
    if (std::ranges::all_of(line, [](std::byte byte) { return byte == std::byte{0}; })) continue;
    text += fmt::format("{:06x} ", at);
    for (const std::byte byte : line) text += fmt::format(" {:02x}", static_cast<unsigned>(byte));
    text += '\n';
  }
  return text + fmt::format("{:06x}\n", bytes.size());
}

inline Bytes from_hex_dump(const std::string& text) {
  Bytes bytes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::size_t at = 0;
    words >> std::hex >> at;
    bytes.resize(at);
    for (unsigned byte = 0; words >> byte;) bytes.push_back(static_cast<std::byte>(byte));
  }
  return bytes;
}

inline std::string golden_path(const std::string& name) {
  return std::string(BATON_SOURCE_DIR) + "/tests/golden/" + name;
}

inline std::string golden(const std::string& name) {
  std::ifstream file(golden_path(name));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void expect_golden(const std::string& name, ByteView bytes) {
  const std::string text = hex_dump(bytes);
  if (std::getenv("BATON_UPDATE_GOLDEN")) std::ofstream(golden_path(name)) << text;
  EXPECT_EQ(golden(name), text) << name;
}

}  // namespace baton
