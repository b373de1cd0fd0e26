#include "server/access.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::server {
namespace {

using testing::HasSubstr;

// X4
TEST(Access, GivesAPrincipalWhatItsLineSays) {
  const NewToken ci = make_token();
  const NewToken ops = make_token();
  const auto access =
      Access::read(fmt::format("# who  what\n"
                               "ci {} default=submit,query  render=work # both\n\n"
                               "ops {} *=all\n",
                               ci.hash, ops.hash));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_TRUE(access->needs_token());
  EXPECT_EQ(access->everyone(), nullptr);
  const PrincipalRef principal = access->find("ci", ci.token);
  ASSERT_TRUE(principal);
  EXPECT_EQ(access->find("", ci.token), principal) << "the token alone will do";
  EXPECT_TRUE(principal->may(Permission::submit, "default"));
  EXPECT_TRUE(principal->may(Permission::query, "default"));
  EXPECT_FALSE(principal->may(Permission::work, "default"));
  EXPECT_FALSE(principal->may(Permission::admin, "default"));
  EXPECT_TRUE(principal->may(Permission::work, "render"));
  EXPECT_FALSE(principal->may(Permission::submit, "render"));
  EXPECT_FALSE(principal->may(Permission::submit, "other"));
  EXPECT_TRUE(access->find("ops", ops.token)->may(Permission::admin, "anything"));
}

// X4
TEST(Access, KnowsNobodyByAWrongTokenOrName) {
  const NewToken made = make_token();
  const auto access = Access::read("ci " + made.hash + " default=all").value();
  EXPECT_FALSE(access.find("ci", ""));
  EXPECT_FALSE(access.find("ci", made.token + "0"));
  EXPECT_FALSE(access.find("ci", made.hash));
  EXPECT_FALSE(access.find("ops", made.token));
  EXPECT_TRUE(access.find_certified("ci"));
  EXPECT_FALSE(access.find_certified("ops"));
}

TEST(Access, LetsATokenBeReplacedWithoutAGap) {
  const NewToken old_one = make_token();
  const NewToken new_one = make_token();
  const auto access =
      Access::read(fmt::format("ci {} default=all\nci {} default=all", old_one.hash, new_one.hash)).value();
  EXPECT_TRUE(access.find("ci", old_one.token));
  EXPECT_TRUE(access.find("ci", new_one.token));
}

// X4
TEST(Access, RenewsWhoIsInTheNewFileUnderTheSameToken) {
  const NewToken ci = make_token();
  const auto before = Access::read("ci " + ci.hash + " default=all").value();
  const PrincipalRef principal = before.find("ci", ci.token);
  const auto fewer = Access::read("ci " + ci.hash + " default=submit").value();
  EXPECT_FALSE(fewer.renew(principal)->may(Permission::query, "default"));
  EXPECT_FALSE(Access::read("ci " + make_token().hash + " default=all").value().renew(principal));
  EXPECT_FALSE(Access::read("ops " + ci.hash + " default=all").value().renew(principal));
  EXPECT_FALSE(before.renew(nullptr));
}

// X3
TEST(Access, RefusesAFileThatMakesNoSense) {
  const std::string hash = make_token().hash;
  const std::pair<std::string, const char*> cases[] = {
      {"", "names nobody"},
      {"# only a comment", "names nobody"},
      {"ci", "line 1: behind the name"},
      {"\nci abc default=all", "line 2: behind the name"},
      {"ci " + hash, "nothing is allowed"},
      {"ci " + hash + " default", "is not NAMESPACE="},
      {"ci " + hash + " default=", "is not NAMESPACE="},
      {"ci " + hash + " default=fly", "is not NAMESPACE="},
      {"ci " + hash + " =work", "is not NAMESPACE="},
  };
  for (const auto& [text, message] : cases) {
    const auto access = Access::read(text);
    ASSERT_FALSE(access) << text;
    EXPECT_THAT(access.error().message, HasSubstr(message)) << text;
  }
}

TEST(Access, IsOpenToAllWithoutAFile) {
  const Access access = Access::open_to_all();
  ASSERT_TRUE(access.everyone());
  EXPECT_TRUE(access.everyone()->may(Permission::admin, "default"));
}

TEST(Tokens, AreNeverTheSame) {
  const NewToken a = make_token();
  const NewToken b = make_token();
  EXPECT_NE(a.token, b.token);
  EXPECT_NE(a.hash, b.hash);
  EXPECT_EQ(a.token.size(), 6 + 64u);
}

}  // namespace
}  // namespace baton::server
