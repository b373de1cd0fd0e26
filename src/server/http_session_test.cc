#include "server/http_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/backstage.h"

namespace baton::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const Pages kNoPages = [](std::string_view path, const PrincipalRef&) -> std::optional<Page> {
  if (path == "/page") return Page{.type = "text/plain", .content = "content"};
  if (path == "/long") return Page{.type = "text/plain", .content = std::string(Desk::kSmall + 1, 'x')};
  if (path == "/made") return Page{.type = "text/plain", .content = {}, .look = [] { return "counts"; }};
  return {};
};

class Browser {
 public:
  explicit Browser(Backstage& stage, const HttpLimits& limits = {})
      : stage_(stage), session(stage.desk(), stage.access, limits, kNoPages, [] {}) {}

  void send(const std::string& text) { session.receive(text); }
  std::string hear() {
    stage_.drive_until([&] {
      session.resume();
      return session.is_idle();
    });
    return std::exchange(session.output(), {});
  }
  std::string get(const std::string& target) {
    send(fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", target));
    return hear();
  }
  std::string post(const std::string& target, const std::string& body, const std::string& headers = "") {
    send(fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n{}", target, headers,
                     body.size(), body));
    return hear();
  }

 private:
  Backstage& stage_;

 public:
  HttpSession session;
};

std::string json_member(const std::string& reply, const std::string& name) {
  const std::string quoted = "\"" + name + "\":\"";
  const std::size_t begin = reply.find(quoted) + quoted.size();
  return reply.substr(begin, reply.find('"', begin) - begin);
}

TEST(HttpSession, TakesATaskThroughItsLife) {  // T30 T32 T36
  Backstage stage;
  Browser browser(stage);
  const std::string submitted =
      browser.post("/v1/submit", R"({"queue":"mail","payload":"hello","priority":3})");
  EXPECT_THAT(submitted, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"));
  const std::string task = json_member(submitted, "task");
  const std::string leased = browser.post("/v1/lease", R"({"worker":"w","queue":"mail"})");
  EXPECT_EQ(json_member(leased, "task"), task);
  EXPECT_EQ(json_member(leased, "payload"), "hello");
  const std::string body = fmt::format(R"({{"task":"{}","lease":"{}","result_base64":"/w=="}})", task,
                                       json_member(leased, "lease"));
  EXPECT_EQ(json_member(browser.post("/v1/complete", body), "status"), "COMMITTED");
  const std::string seen = browser.get("/v1/get?task=" + task);
  EXPECT_EQ(json_member(seen, "state"), "completed");
  EXPECT_EQ(json_member(seen, "result_base64"), "/w==") << "bytes that are not text";
}

TEST(HttpSession, LongPollsForATask) {
  Backstage stage;
  Browser worker(stage);
  Browser submitter(stage);
  worker.send(
      "POST /v1/lease HTTP/1.1\r\nContent-Length: 43\r\n\r\n"
      R"({"worker":"w","queue":"q","wait_ms": 60000})");
  submitter.post("/v1/submit", R"({"queue":"q","payload":"x"})");
  EXPECT_THAT(worker.hear(), HasSubstr(R"("payload":"x")"));
}

TEST(HttpSession, AnswersPipelinedRequestsInOrder) {
  Backstage stage;
  Browser browser(stage);
  browser.send("GET /v1/queues HTTP/1.1\r\n\r\nGET /page HTTP/1.1\r\n\r\nGET /v1/tasks HTTP/1.1\r\n\r\n");
  std::string heard;
  while (heard.find("\"tasks\"") == std::string::npos) heard += browser.hear();
  EXPECT_LT(heard.find("\"queues\""), heard.find("content"));
  EXPECT_LT(heard.find("content"), heard.find("\"tasks\""));
}

TEST(HttpSession, ClosesWhenAskedTo) {
  Backstage stage;
  Browser browser(stage);
  EXPECT_THAT(browser.post("/v1/queues", "{}", "Connection: close\r\n"), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(browser.session.is_closing());
}

// X4
TEST(HttpSession, ServesThoseItKnowsAndAsFarAsTheyMay) {
  const NewToken ci = make_token();
  Backstage stage;
  stage.access = Access::read("ci " + ci.hash + " default=submit").value();
  Browser browser(stage);
  const std::string task = R"({"queue":"q","payload":"x"})";
  const std::string bearer = "Authorization: Bearer " + ci.token + "\r\n";
  EXPECT_THAT(browser.post("/v1/submit", task), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(browser.post("/v1/submit", task, "Authorization: Bearer wrong\r\n"),
              StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(browser.post("/v1/submit", task, "Authorization: Basic eDp5\r\n"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(browser.get("/page"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(browser.post("/v1/submit", task, bearer), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(browser.post("/v1/queues", "{}", bearer), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(browser.post("/v1/submit", R"({"queue":"q","payload":"x","namespace":"other"})", bearer),
              StartsWith("HTTP/1.1 403"));
}

// X4 X5
TEST(HttpSession, TakesNoBodyFromAStranger) {
  const NewToken ci = make_token();
  Backstage stage;
  stage.access = Access::read("ci " + ci.hash + " default=submit").value();
  const auto begin = [](Browser& browser, const std::string& headers) {
    browser.send("POST /v1/submit HTTP/1.1\r\nHost: localhost\r\n" + headers +
                 "Content-Length: 4000000\r\n\r\n");
    return browser.session.output();
  };
  Browser stranger(stage), pretender(stage), known(stage);
  EXPECT_THAT(begin(stranger, ""), StartsWith("HTTP/1.1 401"));
  EXPECT_TRUE(stranger.session.is_closing());
  EXPECT_THAT(begin(pretender, "Authorization: Bearer wrong\r\n"), StartsWith("HTTP/1.1 401"));
  EXPECT_TRUE(pretender.session.is_closing());
  const std::string bearer = "Authorization: Bearer " + ci.token + "\r\n";
  EXPECT_EQ(begin(known, bearer + "Expect: 100-continue\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(known.session.wants_more());
}

// Wherever it is cut into pieces, also within the head of a chunk.
TEST(HttpSession, TakesABodyInChunks) {  // X3
  Backstage stage;
  const std::string request =
      "POST /v1/submit HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "a;x=y\r\n{\"queue\":\"\r\n11\r\nq\",\"payload\":\"x\"}\r\n0\r\n\r\n";
  for (std::size_t cut = 1; cut < request.size(); ++cut) {
    Browser browser(stage);
    browser.send(request.substr(0, cut));
    EXPECT_EQ(browser.session.output(), "") << cut;
    browser.send(request.substr(cut));
    EXPECT_THAT(browser.hear(), StartsWith("HTTP/1.1 200")) << cut;
  }
  Browser endless(stage, {.header_bytes_max = 1000});
  endless.send(request.substr(0, request.find("a;x")) + "a;" + std::string(2000, 'x'));
  EXPECT_THAT(endless.session.output(), StartsWith("HTTP/1.1 413"));
  EXPECT_TRUE(endless.session.is_closing());
}

TEST(HttpSession, SaysWhyItRefusesAlsoBehindAHead) {
  Backstage stage;
  Browser browser(stage);
  browser.send("HEAD /v1/queues HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(browser.hear().ends_with("\r\n\r\n")) << "no body";
  browser.send("POST /v1/submit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000000\r\n\r\n");
  EXPECT_THAT(browser.session.output(), AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("TOO_LARGE")));
}

// Whoever looks after the server needs no token, and no place among the connections.
TEST(HttpSession, AnswersAStrangerOnceAndThatItEndsThere) {  // X4
  Backstage stage;
  const auto ci = make_token();
  stage.access = Access::read("ci " + ci.hash + " default=submit").value();
  const Pages pages = [](std::string_view, const PrincipalRef&) {
    return Page{.type = "text/plain", .content = "alive\n"};
  };
  const auto connection = [&](const std::string& token) {
    HttpSession session(stage.desk(), stage.access, {}, pages, [] {});
    session.receive("GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n");
    EXPECT_THAT(session.output(), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("alive\n")));
    EXPECT_EQ(session.is_closing(), session.output().find("Connection: close") != std::string::npos);
    return session.is_closing() ? "ends" : "stays";
  };
  EXPECT_EQ(connection(""), "ends");
  EXPECT_EQ(connection("Authorization: Bearer " + ci.token + "\r\n"), "stays");
}

// A name that was made to point here may look like a number.
TEST(HttpSession, KnowsALoopbackAddressFromAName) {  // X4
  Backstage stage;
  const auto answer = [&](const std::string& host, bool certified) {
    Browser browser(stage);
    if (certified) browser.session.certified("somebody");
    browser.send("GET /v1/queues HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return browser.hear();
  };
  for (const char* host : {"localhost", "127.0.0.1:7655", "127.9.9.9", "[::1]:7655"})
    EXPECT_THAT(answer(host, false), StartsWith("HTTP/1.1 200")) << host;
  for (const char* host : {"127.evil.example", "127.0.0.1.evil.example:7655", "evil.example", "10.0.0.1"}) {
    EXPECT_THAT(answer(host, false), StartsWith("HTTP/1.1 403")) << host;
    EXPECT_THAT(answer(host, true), StartsWith("HTTP/1.1 200")) << "a browser's page has no certificate";
  }
}

TEST(HttpSession, CountsWhatItRefuses) {
  Backstage stage;
  Browser browser(stage);
  browser.post("/v1/frob", "{}");
  browser.post("/v1/submit", "{");
  EXPECT_EQ(stage.desk().counters.rejections["UNKNOWN_COMMAND"], 1u);
  EXPECT_EQ(stage.desk().counters.rejections["INVALID_REQUEST"], 1u);
}

// X3
TEST(HttpSession, RefusesBadInputAndStaysInStep) {
  Backstage stage;
  Browser browser(stage);
  const std::tuple<const char*, const char*, const char*, const char*> cases[] = {
      {"/v1/frob", "{}", "404", "there is nothing here"},
      {"/nothing", "{}", "404", "there is nothing here"},
      {"/v1/submit", "{", "400", "not JSON"},
      {"/v1/submit", "[]", "400", "has to be a JSON object"},
      {"/v1/submit", "{}", "400", "queue is missing"},
      {"/v1/submit", R"({"queue":"q"})", "400", "payload is missing"},
      {"/v1/submit", R"({"queue":"q","payload":"p","frob":1})", "400", "no such argument: frob"},
      {"/v1/submit", R"({"queue":"q","payload":"p","payload_base64":"AA=="})", "400",
       "payload is given twice"},
      {"/v1/submit", R"({"queue":"q","payload_base64":"A"})", "400", "payload_base64 is not base64"},
      {"/v1/submit", R"({"queue":"q","payload":7})", "400", "payload must be a string"},
      {"/v1/submit", R"({"queue":"q","payload":"p","priority":-1})", "400",
       "priority must be a number from 0 to 9"},
      {"/v1/submit", R"({"queue":"q","payload":"p","priority":1.5})", "400",
       "priority must be a whole number"},
      {"/v1/submit", R"({"queue":"bad name","payload":"p"})", "400", "queue must be"},
      {"/v1/submit", R"({"queue":"q","payload":"p","namespace":""})", "400", "namespace must be"},
      {"/v1/submit", R"({"queue":"q","payload":"p","capability":[["x"]]})", "400",
       "capability must be a string"},
      {"/v1/fail", R"({"task":"1-2","lease":"1-2-3","final":"yes"})", "400", "final must be true or false"},
      {"/v1/complete", R"({"task":"1-2","lease":"1-2-3"})", "404", "NOT_FOUND"},
      {"/v1/submit", R"([[[[[[[[[[]]]]]]]]]])", "400", "not JSON"},
  };
  for (const auto& [target, body, status, message] : cases) {
    const std::string reply = browser.post(target, body);
    EXPECT_THAT(reply, StartsWith(std::string("HTTP/1.1 ") + status)) << target << body << reply;
    EXPECT_THAT(reply, HasSubstr(message)) << target << body;
  }
  EXPECT_THAT(browser.get("/v1/submit?queue=q&payload=x"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(browser.get("/v1/get?task=%zz"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(browser.get("/v1/queues"), HasSubstr("\"queues\":[]")) << "nothing was changed";
}

// X3
TEST(HttpSession, EndsAConversationItCannotFollow) {
  Backstage stage;
  Browser nonsense(stage);
  nonsense.send("\x16\x03\x01 nonsense\r\n\r\n");
  EXPECT_THAT(nonsense.hear(), StartsWith("HTTP/1.1 400"));
  EXPECT_TRUE(nonsense.session.is_closing());

  const HttpLimits limits{.header_bytes_max = 200, .body_bytes_max = 100};
  Browser at_the_limit(stage, limits);
  EXPECT_THAT(at_the_limit.post("/v1/queues", "{" + std::string(98, ' ') + "}"), StartsWith("HTTP/1.1 200"));
  const std::string beyond = at_the_limit.post("/v1/queues", "{" + std::string(99, ' ') + "}");
  EXPECT_THAT(beyond, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(beyond, HasSubstr("a body has 100 bytes at most"));
  EXPECT_TRUE(at_the_limit.session.is_closing());
  Browser talkative(stage, limits);
  EXPECT_THAT(talkative.post("/v1/queues", "{}", "X: " + std::string(200, 'x') + "\r\n"),
              StartsWith("HTTP/1.1 413"));
}

// X5
TEST(HttpSession, CountsWhatHasComeOfABody) {
  Backstage stage({}, {.half_bytes_max = 1'000'000});
  {
    Browser browser(stage);
    browser.send("POST /v1/submit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n" +
                 std::string(1'000'000, 'x'));
    EXPECT_FALSE(browser.session.wants_more());
    EXPECT_TRUE(browser.session.is_halfway());
    Browser other(stage);
    EXPECT_THAT(other.get("/v1/queues"), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_EQ(stage.desk().counters.half_bytes, 0u);
}

// X5: metrics of a thousand queues are megabytes.
TEST(HttpSession, ShowsNoLongPagesWhileTooMuchIsUnread) {
  Backstage stage({}, {.unsent_bytes_max = 1000});
  Browser browser(stage);
  for (const std::string path : {"/page", "/long", "/made"})
    EXPECT_THAT(browser.get(path), StartsWith("HTTP/1.1 200")) << path;
  stage.desk().counters.unsent_bytes = 4000;
  EXPECT_THAT(browser.get("/page"), StartsWith("HTTP/1.1 200"));
  for (const std::string path : {"/long", "/made"})
    EXPECT_THAT(browser.get(path), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1"))) << path;
}

// X5: what waits may do so for an hour.
TEST(HttpSession, KeepsNoBodyOfWhatWaits) {
  Backstage stage;
  Browser browser(stage);
  const std::string body =
      R"({"worker": "w", "queue": "q", "wait_ms": 3600000)" + std::string(1'000'000, ' ') + "}";
  browser.send(fmt::format("POST /v1/lease HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}",
                           body.size(), body));
  ASSERT_TRUE(browser.session.is_waiting());
  EXPECT_LT(stage.desk().counters.half_bytes, 1'000u);
  Browser(stage).post("/v1/submit", R"({"queue": "q", "payload": "x"})");
  EXPECT_THAT(browser.hear(), HasSubstr("attempt"));
}

}  // namespace
}  // namespace baton::server
