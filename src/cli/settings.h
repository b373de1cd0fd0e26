// What a program can be told in three ways, each of which has the last word over the one before:
//
//   connections_max = 100          in a file
//   BATON_CONNECTIONS_MAX=100      in the environment
//   --connections-max 100          on the command line
//
// One table has them all, so that a setting has one name, one range and one text about it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace baton::cli {

struct Setting {
  enum class Kind : std::uint8_t { text, number, time, size };

  std::string name;
  Kind kind = Kind::text;
  std::string value_name;  // HOST:PORT
  std::string about;
  std::string otherwise;                          // what holds if it is not given
  std::function<Status(const std::string&)> set;  // the complaint does not name the setting
};

class Settings {
 public:
  // `name` is followed by what its value is called: "listen HOST:PORT".
  void text(std::string_view name, std::string& value, const char* about);
  void number(std::string_view name, std::uint64_t& value, const char* about, std::uint64_t min,
              std::uint64_t max);
  void time(std::string_view name, Duration& value, const char* about, Duration min, Duration max);
  void size(std::string_view name, std::uint64_t& bytes, const char* about, std::uint64_t min,
            std::uint64_t max);

  const std::vector<Setting>& all() const { return all_; }
  const Setting* find(std::string_view name) const;
  const Setting* nearest(std::string_view name) const;  // for those who mistyped it; none if none is near

 private:
  Setting& add(std::string_view name, Setting::Kind kind, const char* about, std::string otherwise);
  std::vector<Setting> all_;
};

// "file:line: what is wrong", for the first thing that is. Settings before it are set already.
Status read_settings(const Settings& settings, std::string_view toml, const std::string& path);

}  // namespace baton::cli
