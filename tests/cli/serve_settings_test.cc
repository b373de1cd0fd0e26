// What baton serve is told: by file, environment and command line, and what it says of mistakes.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/at_server.h"
#include "tests/temporary_directory.h"

namespace baton::cli {
namespace {

Said serve_with(const std::string& toml) {
  const TemporaryDirectory temporary;
  const std::string path = temporary.path() + "/baton.toml";
  std::ofstream(path) << toml;
  Said said = baton({"serve", "--data", temporary.path() + "/data", "--config", path});
  if (said.errors.starts_with("baton: " + path)) said.errors.erase(7, path.size());
  said.errors.resize(std::min(said.errors.find('\n'), said.errors.size()));
  return said;
}

TEST(ServeSettings, TellWhichLineOfTheFileIsWrong) {  // X3
  const std::pair<const char*, const char*> cases[] = {
      {"\nlisen = \"127.0.0.1:0\"\n", "baton: :2: there is no setting 'lisen'; is it listen?"},
      {"connection_max = 3\n", "baton: :1: there is no setting 'connection_max'; is it connections_max?"},
      {"[limits]\n", "baton: :1: there is no setting 'limits'"},
      {"listen = 7077\n", "baton: :1: listen has to be a string"},
      {"# x\n\nconnections_max = \"3\"\n", "baton: :3: connections_max has to be a whole number"},
      {"connections_max = 0\n", "baton: :1: connections_max: 0 is not from 1 to 1000000"},
      {"connections_max = -1\n", "baton: :1: connections_max: -1 is not from 1 to 1000000"},
      {"stuck_max = 30\n", "baton: :1: stuck_max has to be a time in quotes, such as \"30s\""},
      {"stuck_max = \"30\"\n", "baton: :1: stuck_max: '30' is no time such as 250ms, 30s, 5m or 1h30m"},
      {"payload_bytes_max = \"1MiB\"\n", "baton: :1: payload_bytes_max: 1MiB is not from 1 to 1000000 bytes"},
      {"payload_bytes_max = \"1MB\"\n",
       "baton: :1: payload_bytes_max: '1MB' is no size such as 4096, 256KiB or 64MiB"},
  };
  for (const auto& [toml, expected] : cases) {
    const Said said = serve_with(toml);
    EXPECT_EQ(said.exit_code, 64) << toml;
    EXPECT_EQ(said.errors, expected) << toml;
  }
  EXPECT_TRUE(begins(serve_with("listen = \n").errors, "baton: :1: "));
  for (const char* unclosed :
       {"listen = \"127.0.0.1:0\n", "listen = '127.0.0.1:0\n", "listen = \"127.0.0.1:0"}) {
    const std::string said = serve_with(unclosed).errors;
    EXPECT_TRUE(begins(said, "baton: :1: ") && said.ends_with("; is a quote not closed?")) << said;
  }
}

TEST(ServeSettings, OnTheCommandLineOverrideTheEnvironmentAndThatTheFile) {
  const TemporaryDirectory temporary;
  const std::string path = temporary.path() + "/baton.toml";
  std::ofstream(path) << "payload_bytes_max = 10\ntasks_max = 1\nretention_count = 0\n";
  ::setenv("BATON_TASKS_MAX", "3", 1);
  ::setenv("BATON_RETENTION_COUNT", "5", 1);
  const AtServer at({"--config", path, "--retention-count", "1000"});
  ::unsetenv("BATON_TASKS_MAX");
  ::unsetenv("BATON_RETENTION_COUNT");
  const Said large = at.baton({"submit", "q", "more than ten bytes"});
  EXPECT_TRUE(begins(large.errors, "baton: TOO_LARGE: ")) << large.errors;
  const Said four = at.shell("seq 4 | baton submit q --lines --timeout 2s");
  EXPECT_TRUE(contains(four.errors, " s, 1 not taken")) << four.errors;
  at.baton({"work", "q", "--drain", "--", "true"});
  EXPECT_TRUE(contains(at.baton({"queue", "list", "--json"}).output, R"("completed":3)"));
}

TEST(ServeSettings, TakeTokensThatSystemdHandsOver) {  // X4
  const TemporaryDirectory credentials;
  std::ofstream(credentials.path() + "/baton.tokens")
      << "ci 5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8 default=submit\n";
  ::setenv("CREDENTIALS_DIRECTORY", credentials.path().c_str(), 1);
  const AtServer at;
  ::unsetenv("CREDENTIALS_DIRECTORY");
  EXPECT_EQ(at.baton({"submit", "mail", "hello"}).exit_code, 77);
  EXPECT_EQ(at.shell("BATON_TOKEN=password baton submit mail hello").exit_code, 0);
}

TEST(ServeSettings, SayWhatIsWrongWithAFileOfTokens) {  // X7
  const TemporaryDirectory temporary;
  const std::string nowhere = temporary.path() + "/nowhere";
  const Said said = baton({"serve", "--data", temporary.path() + "/data", "--tokens", nowhere});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(contains(said.errors, nowhere + ": No such file or directory; ")) << said.errors;
}

TEST(ServeSettings, AreNamedWhenTheirPortIsInUse) {  // X7
  const Served other(BATON_PROGRAM);
  const TemporaryDirectory data;
  const auto serve = [&](const std::string& listen, const std::string& http) {
    const Said said = baton({"serve", "--data", data.path(), "--listen", listen, "--http", http});
    EXPECT_EQ(said.exit_code, 1);
    return said.errors;
  };
  const std::string refused = "cannot listen on " + other.address() + ": Address already in use; ";
  EXPECT_TRUE(contains(serve(other.address(), "127.0.0.1:0"), refused + "choose another port with --listen"));
  EXPECT_TRUE(contains(serve("127.0.0.1:0", other.address()), refused + "choose another port with --http"));
}

TEST(ServeSettings, FromTheEnvironmentOfAServerDoNotTroubleOtherCommands) {
  ::setenv("BATON_STUCK_MAX", "soon", 1);
  const Said other = baton({"log", "stat", "/nowhere"});
  const Said server = baton({"serve"});
  ::unsetenv("BATON_STUCK_MAX");
  EXPECT_EQ(other.exit_code, 74);
  EXPECT_EQ(server.exit_code, 64);
  EXPECT_TRUE(begins(server.errors, "baton: BATON_STUCK_MAX: 'soon' is no time")) << server.errors;
  EXPECT_TRUE(begins(baton({"serve", "--stuck-max", "soon"}).errors, "baton: --stuck-max: 'soon'"));
  const Said listen = baton({"serve", "--listen", "127.0.0.1"});
  EXPECT_EQ(listen.errors,
            "baton: listen: '127.0.0.1' is not HOST:PORT, such as 127.0.0.1:7077\n"
            "baton serve --help tells how it is used\n");
  EXPECT_EQ(listen.exit_code, 64);
}

// Those of other commands, and of nobody, are left alone.
TEST(ServeSettings, OfTheEnvironmentThatAreMisspeltAreToldWithTheNearest) {
  const Said said =
      run_program({"/usr/bin/env", "BATON_CONECTIONS_MAX=100", "BATON_TOKEN=x", "BATON_DATABASE=x",
                   "BATON_TLS_CA=x", "BATON_LONG=1", "BATON_SEED=1", "BATON_PORT=tcp://10.0.0.1:7077",
                   "BATON_SERVICE_HOST=10.0.0.1", BATON_PROGRAM, "serve", "--listen", "nowhere"});
  EXPECT_EQ(said.errors,
            "baton: there is no setting BATON_CONECTIONS_MAX; is it BATON_CONNECTIONS_MAX?\n"
            "baton: listen: 'nowhere' is not HOST:PORT, such as 127.0.0.1:7077\n"
            "baton serve --help tells how it is used\n");
}

TEST(ServeSettings, OfAnAddressAreANumberOrLocalhost) {
  const TemporaryDirectory data;
  crash::Child server({.command = {BATON_PROGRAM, "serve", "--data", data.path(), "--listen", "localhost:0",
                                   "--http", "localhost:0"}});
  std::string first;
  server.listen(crash::after_ms(20'000), [&](const std::string& line) {
    first = line;
    return false;
  });
  EXPECT_TRUE(contains(first, " serves RESP on 127.0.0.1:") && contains(first, " and HTTP on 127.0.0.1:"))
      << first;
  for (const char* option : {"--listen", "--http"}) {
    const Said said = baton({"serve", option, "baton.example:7077"});
    EXPECT_EQ(said.exit_code, 64);
    EXPECT_TRUE(contains(said.errors, ": 'baton.example' is not an address; give a number such as 127.0.0.1"))
        << said.errors;
  }
}

}  // namespace
}  // namespace baton::cli
