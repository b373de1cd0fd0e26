#include "pipeline/html_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/testing.h"

namespace baton::pipeline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AReportAsAPage : public ::testing::Test {
 protected:
  AReportAsAPage() {
    sketch_.definition.name = "release <1>";
    sketch_.add("build");
    sketch_.add("test", {"build"});
    sketch_.add("publish", {"test"});
    report_.run = "run-1";
    report_.pipeline = sketch_.definition.name;
    report_.outcome = RunOutcome::failed;
    report_.took = seconds(10);
    report_.modules = {{.node = 0, .id = "build", .status = ModuleStatus::succeeded, .worker = "worker 1"},
                       {.node = 1, .id = "test", .status = ModuleStatus::failed, .worker = "worker 2"},
                       {.node = 2, .id = "publish", .status = ModuleStatus::dependency_failed}};
    report_.modules[0].tries = report_.modules[1].tries = 1;
    report_.modules[0].took = report_.modules[1].began_at = report_.modules[1].took = seconds(5);
    report_.modules[1].failure = {.kind = FailureKind::exit_code, .message = "sh exited with code 3"};
  }
  std::string page() const {
    return html_of(sketch_.graph(), report_, [](const std::string& module) {
      return module == "test" ? "<script>alert(1)</script> said test\n" : std::string();
    });
  }

  Sketch sketch_;
  RunReport report_;
};

TEST_F(AReportAsAPage, HasWhatFailedFirst) {  // P16
  const std::string text = page();
  EXPECT_LT(text.find("<code>test</code>"), text.find("<code>build</code>"));
  EXPECT_THAT(text, HasSubstr("sh exited with code 3"));
  EXPECT_THAT(text, HasSubstr("<details open>"));
  EXPECT_THAT(text, HasSubstr("left:50.00%;width:50.00%"));
  EXPECT_THAT(text, HasSubstr("class=\"module failed\""));
}

TEST_F(AReportAsAPage, NeedsNothingElseAndRunsNothing) {  // P16
  std::string text = page();
  EXPECT_THAT(text, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(text, HasSubstr("release &lt;1&gt;"));
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  for (const char* outside : {"src=", "href=", "url(", "@import"}) EXPECT_THAT(text, Not(HasSubstr(outside)));
}

}  // namespace
}  // namespace baton::pipeline
