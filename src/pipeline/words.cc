#include "pipeline/words.h"

namespace baton::pipeline {

std::string in_words(Duration time) {
  struct Unit {
    Duration size;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{hours(1), " h"}, {minutes(1), " min"}, {seconds(1), " s"}};
  for (const Unit& unit : kUnits) {
    if (time.ms != 0 && time.ms % unit.size.ms == 0)
      return std::to_string(time.ms / unit.size.ms) + unit.name;
  }
  return std::to_string(time.ms) + " ms";
}

std::string counted(std::size_t number, std::string_view what) {
  return std::to_string(number) + " " + std::string(what) + (number == 1 ? "" : "s");
}

}  // namespace baton::pipeline
