#include "server/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "server/http_session.h"
#include "tests/backstage.h"

namespace baton::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr Instant kNow{1'000'000};

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

AuditedAction an_action(std::string what = "pause") {
  return {.who = "ops",
          .from = "10.0.0.7",
          .what = std::move(what),
          .arguments = {{"queue", "mail"}},
          .ns = "default"};
}

class AuditFile : public testing::Test {
 protected:
  // Three actions, each with its end.
  std::string six_lines() {
    auto audit = Audit::open(path_).value();
    for (const char* what : {"pause", "purge", "resume"})
      EXPECT_TRUE(audit->ended(audit->began(an_action(what), kNow).value(), "COMMITTED", 5, kNow));
    return content_of(path_);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/audit";
};

TEST_F(AuditFile, SaysWhoDidWhatFromWhereAndHowItEnded) {
  const auto lines = lines_of(six_lines());
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_THAT(lines[0],
              StartsWith(R"({"number":1,"time":1000000,"who":"ops","from":"10.0.0.7","what":"pause",)"
                         R"("queue":"mail","namespace":"default","before":"0000)"));
  EXPECT_THAT(lines[1],
              StartsWith(R"({"number":2,"time":1000000,"ends":1,"outcome":"COMMITTED","lsn":5,"before":")"));
}

TEST_F(AuditFile, ShowsALineThatWasTakenOutOrChanged) {
  const auto lines = lines_of(six_lines());
  EXPECT_EQ(check_audit(joined(lines)).value().count, 6u);
  for (std::size_t at = 0; at + 1 < lines.size(); ++at) {
    auto fewer = lines;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
    EXPECT_EQ(check_audit(joined(fewer)).has_value(), at == 0)
        << "but that it begins later, as after a rotation";
    auto changed = lines;
    changed[at].replace(changed[at].find("time"), 4, "mite");
    EXPECT_FALSE(check_audit(joined(changed))) << at;
  }
}

TEST_F(AuditFile, GoesOnAfterARestartAndARotation) {
  six_lines();
  auto audit = Audit::open(path_).value();
  EXPECT_EQ(audit->began(an_action(), kNow).value(), 7u);
  const std::string first = content_of(path_);
  std::filesystem::rename(path_, path_ + ".1");
  EXPECT_EQ(audit->began(an_action(), kNow).value(), 8u) << "still in the old one";
  ASSERT_TRUE(audit->reopen());
  EXPECT_EQ(audit->began(an_action(), kNow).value(), 9u);
  const std::string both = content_of(path_ + ".1") + content_of(path_);
  EXPECT_EQ(check_audit(both).value().count, 9u);
  EXPECT_EQ(lines_of(content_of(path_)).size(), 1u);
}

TEST_F(AuditFile, GoesOnBehindALineThatACrashCutShort) {
  const std::string text = six_lines();
  for (const std::size_t cut : {1u, 2u, 40u}) {
    std::ofstream(path_, std::ios::binary) << text.substr(0, text.size() - cut);
    auto audit = Audit::open(path_).value();
    EXPECT_TRUE(audit->began(an_action(), kNow));
    EXPECT_TRUE(Audit::open(path_)) << "and once more";
    const auto checked = check_audit(content_of(path_));
    if (cut == 1) {
      EXPECT_EQ(checked.value().count, 7u) << "only its end was missing";
    } else {
      EXPECT_THAT(checked.error().message, HasSubstr("line 6 of the file cannot be read: cut short"));
    }
  }
}

TEST_F(AuditFile, GoesOnBehindAFirstLineThatACrashCutShort) {
  const std::string text = six_lines();
  for (const std::size_t left : {1u, 5u, 40u}) {
    std::ofstream(path_, std::ios::binary) << text.substr(0, left);
    auto audit = Audit::open(path_).value();
    EXPECT_EQ(audit->began(an_action(), kNow).value(), 2u);
    EXPECT_TRUE(Audit::open(path_)) << left;
  }
}

TEST_F(AuditFile, ShowsALineThatCannotBeRead) {
  const std::string text = six_lines();
  EXPECT_THAT(check_audit(text + "nonsense\n").error().message, StartsWith("line 7 of the file cannot"));
  EXPECT_THAT(check_audit(text + "nonsense\nmore").error().message, HasSubstr("; and 1 more"));
  EXPECT_THAT(check_audit("nonsense\n").error().message, StartsWith("is not an audit file"));
  EXPECT_EQ(check_audit("").value().count, 0u) << "nobody has done anything yet";
}

TEST_F(AuditFile, SaysWithWhichNumberItBegins) {
  const auto lines = lines_of(six_lines());
  EXPECT_EQ(check_audit(joined(lines)).value().first, 1u);
  EXPECT_EQ(check_audit(joined({lines[2], lines[3]})).value().first, 3u);
  auto renumbered = lines[2];
  renumbered.replace(renumbered.find(":3,"), 3, ":1,");
  EXPECT_THAT(check_audit(renumbered).error().message, StartsWith("line 1 names a line before it"));
}

TEST_F(AuditFile, LeavesAFileThatIsNoneAsItIs) {
  for (const std::string& content :
       {std::string("\x89PNG\r\n\x1a\n"), std::string("\n"), std::string("{}")}) {
    std::ofstream(path_, std::ios::binary) << content;
    const auto opened = Audit::open(path_);
    ASSERT_FALSE(opened) << content;
    EXPECT_THAT(opened.error().message, HasSubstr("is not an audit file"));
    EXPECT_EQ(content_of(path_), content);
  }
}

TEST_F(AuditFile, IsNotGoneOnWithOnceItWasTamperedWith) {
  auto lines = lines_of(six_lines());
  lines.erase(lines.begin() + 2);
  std::ofstream(path_, std::ios::binary) << joined(lines);
  const auto opened = Audit::open(path_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
  EXPECT_THAT(opened.error().message, HasSubstr("behind line 2 comes line 4"));
}

TEST_F(AuditFile, HasEveryAdministrativeActionOfBothProtocols) {
  const NewToken ops = make_token();
  auto audit = Audit::open(path_).value();
  Backstage stage;
  stage.audit_to(*audit);
  stage.access = Access::read("ops " + ops.hash + " *=all").value();
  Client client(stage);
  client.session.arrived("10.0.0.7", {});
  client.ask({"AUTH", ops.token});
  client.ask({"SUBMIT", "mail", "x"});
  client.ask({"USE", "other"});
  client.ask({"PAUSE", "mail"});
  client.ask({"PURGE", "nothing"});
  client.ask({"PAUSE", "two words"});
  EXPECT_EQ(lines_of(content_of(path_)).size(), 4u) << "neither what is no action, nor what makes no sense";
  const Pages no_pages = [](std::string_view, const PrincipalRef&) { return std::optional<Page>(); };
  HttpSession browser(stage.desk(), stage.access, {}, no_pages, [] {});
  browser.arrived("10.0.0.8", {});
  browser.receive("POST /v1/resume HTTP/1.1\r\nAuthorization: Bearer " + ops.token +
                  "\r\nContent-Length: 36\r\n\r\n{\"queue\":\"mail\",\"namespace\":\"other\"}");
  stage.drive_until([&] { return browser.is_idle(); });
  const auto lines = lines_of(content_of(path_));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_THAT(
      lines[0],
      HasSubstr(R"("who":"ops","from":"10.0.0.7","what":"pause","queue":"mail","namespace":"other")"));
  EXPECT_THAT(lines[1], HasSubstr(R"("ends":1,"outcome":"COMMITTED","lsn":)"));
  EXPECT_THAT(lines[3], HasSubstr(R"("ends":3,"outcome":"NOT_FOUND")"));
  EXPECT_THAT(lines[4], HasSubstr(R"("from":"10.0.0.8","what":"resume")"));
  EXPECT_EQ(check_audit(content_of(path_)).value().count, 6u);
}

// What is written down first takes its time, and the next command of the connection waits for it.
TEST_F(AuditFile, LeavesTheCommandsOfAConnectionInTheirOrder) {
  auto audit = Audit::open(path_).value();
  Backstage stage;
  stage.audit_to(*audit);
  Client client(stage);
  client.send({"PAUSE", "mail"});
  client.send({"QUEUES"});
  EXPECT_EQ(client.session.output(), "") << "nothing is begun before the line is on disk";
  EXPECT_THAT(client.hear(), testing::ContainsRegex("COMMITTED .*queues \\*1 .*mail "));
  client.send({"RESUME", "mail"});  // whoever goes meanwhile leaves nothing behind
}

TEST_F(AuditFile, RefusesAnActionItCannotWriteDown) {
  auto audit = Audit::open(path_).value();
  Backstage stage;
  stage.audit_to(*audit);
  Client client(stage);
  client.ask({"PAUSE", "first"});
  std::filesystem::rename(path_, path_ + ".1");
  std::filesystem::create_symlink("/dev/full", path_);
  ASSERT_TRUE(audit->reopen());
  EXPECT_THAT(client.ask({"PAUSE", "mail"}), StartsWith("-IO_FAILED the audit file cannot be written: "));
  std::filesystem::rename(path_ + ".1", path_);
  ASSERT_TRUE(audit->reopen());
  EXPECT_THAT(client.ask({"QUEUES"}), HasSubstr("queues *1")) << "it was not done";
  EXPECT_EQ(member(client.ask({"PAUSE", "mail"}), "status"), "COMMITTED") << "and now it can be";
  EXPECT_EQ(check_audit(content_of(path_)).value().count, 4u);
}

// X8: a disk that failed once is not believed when it says that all is well.
TEST(Audit, EndsWhereALineCouldNotBeMadeDurable) {
  const auto audit = Audit::open("/dev/null").value();  // which takes lines, and cannot be synced
  ASSERT_TRUE(audit->began({.who = "ops", .what = "pause"}, Instant{1}));
  EXPECT_FALSE(audit->syncing()());
  const auto refused = audit->began({.who = "ops", .what = "pause"}, Instant{2});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("send SIGHUP"), std::string::npos);
  ASSERT_TRUE(audit->reopen());
  EXPECT_TRUE(audit->began({.who = "ops", .what = "pause"}, Instant{3}));
}

}  // namespace
}  // namespace baton::server
