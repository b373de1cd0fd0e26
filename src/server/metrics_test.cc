#include "server/metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/http_session.h"
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
  const auto seen_by = [&](const PrincipalRef& who) { return metrics_text(stage.desk(), who.get()); };
  const std::string some = seen_by(access.find("", token.token));
  EXPECT_THAT(some, HasSubstr(R"(baton_tasks{namespace="default",queue="mine",state="waiting"} 1)"));
  EXPECT_THAT(some, HasSubstr("baton_queues 1\n"));
  EXPECT_THAT(some, Not(HasSubstr("theirs")));
  EXPECT_THAT(seen_by(stage.access.everyone()), HasSubstr("theirs"));
}

TEST(Metrics, TellWhatHappenedInEachQueue) {
  Backstage stage;
  Client client(stage);
  client.ask({"SUBMIT", "mail", "x"});
  const std::string leased = client.ask({"LEASE", "w", "mail"});
  client.ask({"COMPLETE", member(leased, "task"), member(leased, "lease")});
  client.ask({"SUBMIT", "other", "x"});
  const std::string text = metrics_text(stage.desk(), stage.access.everyone().get());
  const auto line = [](const char* queue, const char* event, int count) {
    return fmt::format("baton_queue_events_total{{namespace=\"default\",queue=\"{}\",event=\"{}\"}} {}\n",
                       queue, event, count);
  };
  EXPECT_THAT(text, HasSubstr(line("mail", "created", 1)));
  EXPECT_THAT(text, HasSubstr(line("mail", "leased", 1)));
  EXPECT_THAT(text, HasSubstr(line("mail", "completed", 1)));
  EXPECT_THAT(text, HasSubstr(line("other", "created", 1)));
  EXPECT_THAT(text, HasSubstr(line("other", "leased", 0)));
  EXPECT_THAT(text, HasSubstr("baton_batch_entries_bucket{le=\"1\"} "));
  EXPECT_THAT(text, HasSubstr("baton_disk_nearly_full 0\n"));
}

// X5
TEST(Metrics, SumUpTheQueuesBeyondTheFirstThousand) {
  Backstage stage;
  Client client(stage);
  for (std::size_t i = 0; i < QueueCounts::kQueuesMax + 3; ++i)
    client.send({"SUBMIT", "q" + std::to_string(i), "x"});
  client.hear();
  client.ask({"LEASE", "w", "q0"});
  const std::string text = metrics_text(stage.desk(), stage.access.everyone().get());
  const std::string others = R"({namespace="all others",queue="all others",)";
  EXPECT_THAT(text, HasSubstr("baton_queue_events_total" + others + "event=\"created\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("baton_tasks" + others + "state=\"waiting\"} 3\n"));
  EXPECT_THAT(text, HasSubstr(R"(queue="q0",event="leased"} 1)"));
  EXPECT_THAT(text, Not(HasSubstr("q1000")));
}

// E1: what was submitted in the same turn may still be lost.
TEST(Metrics, LeaveWhenWhatTheyTellOfIsDurable) {
  Backstage stage;
  Client client(stage);
  const Pages pages = [&](std::string_view, const PrincipalRef& who) {
    return metrics_page(stage.desk(), who);
  };
  HttpSession session(stage.desk(), stage.access, {}, pages, [] {});
  stage.turn([&] {
    client.send({"SUBMIT", "mail", "x"});
    session.receive("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(session.output(), "");
  });
  stage.drive_until([&] { return session.is_idle(); });
  EXPECT_THAT(session.output(), HasSubstr(R"(queue="mail",state="waiting"} 1)"));
}

}  // namespace
}  // namespace baton::server
