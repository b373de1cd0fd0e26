// What the pages about streams say is so.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

namespace fs = std::filesystem;
const fs::path kSource = BATON_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The words in brackets of every match, joined by a full stop.
std::set<std::string> pairs_in(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match)
    found.insert((*match)[1].str() + "." + (*match)[2].str());
  return found;
}

// E7: what is different is said, and so.
TEST(TheDocument, SaysWhereItDiffersFromItsSource) {
  const std::string text = text_of(kSource / "docs/streams.md");
  const std::string said = text.substr(text.find("## Where this differs"));
  for (const char* difference :
       {"De-duplication is not permanent", "at least once", "Ownership is by rank",
        "There are no partition assignments", "Of later versions the event store is in"})
    EXPECT_NE(said.find(difference), std::string::npos) << difference;
  EXPECT_EQ(ask(migrated_database(),
                "select concat_ws(',', to_regclass('wh_partition_assignments'), "
                "to_regclass('wh_message_associations'), to_regclass('wh_event_store'))"),
            "wh_event_store");
}

// S1 to S25: every scenario has a test that is there.
TEST(TheDocument, NamesTestsThatThereAre) {
  const std::regex test(R"(TEST(?:_P|_F)?\((\w+),\s*(\w+)\))"), named(R"(`([A-Z]\w+)\.([A-Z]\w+)`)");
  std::set<std::string> tests;
  for (const char* folder : {"src", "tests/stream"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kSource / folder)) {
      if (entry.path().string().ends_with("_test.cc")) tests.merge(pairs_in(text_of(entry.path()), test));
    }
  }
  const std::set<std::string> wanted = pairs_in(text_of(kSource / "docs/stream-scenarios.md"), named);
  EXPECT_GT(wanted.size(), 90u);
  for (const std::string& name : wanted) EXPECT_TRUE(tests.contains(name)) << name;
}

// Scenarios are numbered, section by section, so that one that is gone is missed.
TEST(TheDocument, NumbersItsScenarios) {
  std::istringstream page(text_of(kSource / "docs/stream-scenarios.md"));
  int section = 0, row = 0, all = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) {
      ++section, row = 0;
      EXPECT_TRUE(line.starts_with("## " + std::to_string(section) + ". ")) << line;
    } else if (line.starts_with("| ") && !line.starts_with("| | ")) {
      ++row, ++all;
      EXPECT_TRUE(line.starts_with("| " + std::to_string(section) + "." + std::to_string(row) + " | "))
          << line;
    }
  }
  EXPECT_GE(all, 120);
}

}  // namespace
}  // namespace baton::stream
