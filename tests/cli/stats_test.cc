// baton stats, worker list and top: what they show of a coordinator.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/at_server.h"

namespace baton::cli {
namespace {

TEST(StatsCommand, TellsHowTheCoordinatorIsDoing) {
  const AtServer at;
  at.shell("seq 3 | baton submit q --lines; baton work q --once -- cat");
  const Said said = at.baton({"stats"});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_TRUE(contains(said.output,
                       "\ntasks         2 waiting, 0 leased, 1 completed, 0 failed, 0 dead, in 1 queue\n"))
      << said.output;
  EXPECT_TRUE(contains(said.output, "\nin default    2 waiting, ")) << said.output;
  const Said json = at.baton({"stats", "--json"});
  EXPECT_TRUE(contains(json.output,
                       R"("tasks":{"queues":1,"waiting":2,"leased":0,"completed":1,"failed":0,"dead":0},)"
                       R"("namespace":{"name":"default","queues":1,)"))
      << json.output;
  EXPECT_TRUE(
      contains(json.output, R"("payload_bytes":3},"streams":{"services":0,"instances":0,"streams":0,)"))
      << json.output;
  EXPECT_TRUE(
      contains(said.output, "\nstreams       0 waiting, 0 held, 0 dead, in 0 streams of 0 services, "))
      << said.output;
}

TEST(WorkerList, ShowsWhoHoldsTasksAndWhatTheyCanDo) {
  const AtServer at;
  at.shell(
      "baton submit q x; redis-cli -u redis://$0 HEARTBEAT w1 CAPACITY 4 CAPABILITY gpu;"
      "redis-cli -u redis://$0 LEASE w1 q");
  const Said said = at.baton({"worker", "list"});
  EXPECT_TRUE(begins(said.output, "WORKER  LEASES  WANTS  SILENT  CAPABILITIES\nw1           1      4 "))
      << said.output;
  const Said json = at.baton({"worker", "list", "--json"});
  EXPECT_TRUE(
      begins(json.output, R"({"worker":"w1","leases":1,"capacity":4,"capabilities":"gpu","silent_ms":)"))
      << json.output;
}

TEST(WorkerList, LeavesOutHowPipelinesKeepTheirBooks) {
  const AtServer at;
  at.shell(
      "d=$(mktemp -d); echo '{version: 1, modules: {a: {run: ls}, b: {pin: master, run: ls}}}' > $d/p.yaml;"
      "baton run $d/p.yaml --connect $0 --workers 1 --only-master --cap gpu --run r; rm -r $d");
  const Said json = at.baton({"worker", "list", "--json"});
  EXPECT_TRUE(contains(json.output, R"("capabilities":"run:r")")) << json.output;
  const std::string table = at.baton({"worker", "list"}).output;
  EXPECT_EQ(std::ranges::count(table, '\n'), 3) << table;  // names, a worker, and how many are left out
  EXPECT_TRUE(contains(table, "gpu linux\n… and 4 more")) << table;
}

TEST(Top, IsNotShownFasterThanAnybodyReads) {
  const Said said = AtServer().baton({"top", "--every", "1ms"});
  EXPECT_EQ(said.exit_code, 64);
  EXPECT_EQ(said.errors, "baton: --every takes 100ms or more\nbaton top --help tells how it is used\n");
}

TEST(Top, PrintsOnePictureWhereThereIsNoTerminal) {
  const AtServer at;
  at.shell(
      "seq 3 | baton submit q --lines; seq 5 | baton submit many --lines; baton work q --once --name w1 -- "
      "cat");
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"top", "--once"}, {"top"}}) {
    const Said said = at.baton(arguments);
    EXPECT_EQ(said.exit_code, 0) << said.errors;
    EXPECT_TRUE(contains(said.output, "tasks   7 waiting   0 leased   1 completed   0 failed   0 dead\n"))
        << said.output;
    EXPECT_TRUE(contains(said.output,
                         "\nQUEUE  WAITING  OF THEM DELAYED  LEASED  DONE/S  COMPLETED  FAILED  DEAD\n"
                         "many         5                0       0       0          0       0     0\n"
                         "q            2                0       0       0          1       0     0\n"
                         "\nWORKER  LEASES  WANTS"))
        << said.output;
    EXPECT_FALSE(contains(said.output, "\x1b")) << said.output;
  }
}

TEST(Top, IsOneObjectForPrograms) {  // X8
  const AtServer at;
  at.shell("seq 3 | baton submit q --lines; baton work q --once --name w1 -- cat");
  const Said said = at.baton({"top", "--json"});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_EQ(std::ranges::count(said.output, '\n'), 1) << said.output;
  EXPECT_TRUE(begins(said.output, R"({"stats":{"lsn":)")) << said.output;
  for (const char* part :
       {R"("per_second":{"commands":)", R"("queues":[{"queue":"q","paused":false,"waiting":2,)",
        R"("dead":0,"done_per_second":0}])", R"("workers":[{"worker":"w1")"})
    EXPECT_TRUE(contains(said.output, part)) << part << " in " << said.output;
}

}  // namespace
}  // namespace baton::cli
