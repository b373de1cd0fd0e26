#include "server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backstage.h"

namespace baton::server {
namespace {

using testing::HasSubstr;
using testing::Not;

// X4
TEST(Metrics, ShowQueuesToThoseWhoMayQueryThem) {
  Backstage stage;
  Client client(stage);
  client.ask({"SUBMIT", "mine", "x"});
  client.ask({"USE", "other"});
  client.ask({"SUBMIT", "theirs", "x"});
  const NewToken token = make_token();
  const Access access = Access::read("some " + token.hash + " default=query other=submit").value();
  const auto seen_by = [&](const PrincipalRef& who) {
    return metrics_text(*stage.authority, stage.desk().counters, who.get());
  };
  const std::string some = seen_by(access.find("", token.token));
  EXPECT_THAT(some, HasSubstr(R"(baton_tasks{namespace="default",queue="mine",state="waiting"} 1)"));
  EXPECT_THAT(some, HasSubstr("baton_queues 1\n"));
  EXPECT_THAT(some, Not(HasSubstr("theirs")));
  EXPECT_THAT(seen_by(stage.access.everyone()), HasSubstr("theirs"));
}

}  // namespace
}  // namespace baton::server
