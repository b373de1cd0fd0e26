// Pipelines of processes, for tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "pipeline/value.h"
#include "tests/crash/child.h"
#include "tests/served.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {

// A folder with a pipeline in it, and people who run it.
class Yard {
 public:
  explicit Yard(const std::string& text) { std::ofstream(path() + "/pipeline.yaml") << text; }

  std::string path() const { return directory_.path(); }
  crash::ChildOptions baton(std::vector<std::string> words) const {
    words.insert(words.begin(), BATON_PROGRAM);
    return {.command = std::move(words)};
  }
  crash::ChildOptions run(std::vector<std::string> more) const {
    more.insert(more.begin(), {"run", path() + "/pipeline.yaml"});
    return baton(std::move(more));
  }
  // One that nobody kills keeps what it has, however busy the machine is.
  crash::ChildOptions worker(const std::string& where, std::vector<std::string> more = {},
                             const std::string& lost_after = "20s") const {
    more.insert(more.begin(), {"worker", "--connect", where, "--lost-after", lost_after});
    return baton(std::move(more));
  }
  std::string contents(const std::string& name) const {
    std::ifstream file(path() + "/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

 private:
  TemporaryDirectory directory_;
};

// The report that a master printed.
inline Value report_of(crash::Child& master, crash::Exit& exit) {
  std::string json;
  master.listen(crash::after_ms(120'000), [&](const std::string& line) {
    json = line;
    return true;
  });
  exit = master.wait(crash::after_ms(10'000));
  auto report = from_json(json);
  EXPECT_TRUE(report) << json << master.errors();
  return report ? *report : Value{};
}
inline std::map<std::string, std::string> statuses(const Value& report) {
  std::map<std::string, std::string> all;
  if (const Value* modules = report.field("modules")) {
    for (const Value& module : *modules->list())
      all[*module.field("id")->text()] = *module.field("status")->text();
  }
  return all;
}
// A number that the report has of a module.
inline std::int64_t number_of(const Value& report, const std::string& module, const char* field) {
  if (const Value* modules = report.field("modules")) {
    for (const Value& one : *modules->list()) {
      if (*one.field("id")->text() == module) return std::get<std::int64_t>(one.field(field)->is);
    }
  }
  return -1;
}

}  // namespace baton::pipeline
