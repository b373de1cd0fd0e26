#include "server/openapi.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>

#include "server/http_session.h"
#include "server/verb.h"
#include "tests/backstage.h"

namespace baton::server {
namespace {

namespace json = boost::json;

bool has_type(const json::value& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "integer") return value.is_int64() || value.is_uint64();
  return false;
}

// What is wrong with `value` by `schema`; empty if nothing. As much of JSON Schema as the document uses, and
// stricter in one point: a member that the schema does not list is wrong.
std::string complaint(const json::value& value, const json::object& schema, const json::object& document) {
  if (schema.contains("$ref")) {
    const std::string_view path = schema.at("$ref").as_string();
    const auto& schemas = document.at("components").at("schemas").as_object();
    return complaint(value, schemas.at(path.substr(path.rfind('/') + 1)).as_object(), document);
  }
  if (schema.contains("anyOf")) {
    std::string all;
    for (const json::value& one : schema.at("anyOf").as_array()) {
      const std::string wrong = complaint(value, one.as_object(), document);
      if (wrong.empty()) return "";
      all += wrong + "; ";
    }
    return "none of: " + all;
  }
  if (schema.contains("enum")) {
    for (const json::value& one : schema.at("enum").as_array())
      if (one == value) return "";
    return json::serialize(value) + " is not listed";
  }
  if (!has_type(value, schema.at("type").as_string())) return json::serialize(value) + " has another type";
  if (value.is_array()) {
    for (const json::value& item : value.as_array())
      if (auto wrong = complaint(item, schema.at("items").as_object(), document); !wrong.empty())
        return wrong;
  }
  if (!value.is_object()) return "";
  if (schema.contains("required")) {
    for (const json::value& name : schema.at("required").as_array())
      if (!value.as_object().contains(name.as_string())) return json::serialize(name) + " is missing";
  }
  for (const auto& [name, member] : value.as_object()) {
    const auto& properties = schema.at("properties").as_object();
    if (!properties.contains(name)) return std::string(name) + " is not in the document";
    if (auto wrong = complaint(member, properties.at(name).as_object(), document); !wrong.empty())
      return std::string(name) + ": " + wrong;
  }
  return "";
}

class Document : public testing::Test {
 protected:
  // Calls a verb and holds its reply against the document.
  json::value call(const std::string& verb, const std::string& body) {
    const std::string path = "/v1/" + verb;
    session_.receive(
        fmt::format("POST {} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{}", path, body.size(), body));
    stage_.drive_until([&] { return session_.is_idle(); });
    const std::string reply = std::exchange(session_.output(), {});
    const std::string status = reply.substr(9, 3);
    json::value value = json::parse(reply.substr(reply.find("\r\n\r\n") + 4));
    const auto& responses = document_.at("paths").at(path).at("post").at("responses").as_object();
    const auto& response = responses.at(status == "200" ? "200" : "default").as_object();
    const auto& schema = response.at("content").at("application/json").at("schema").as_object();
    EXPECT_EQ(complaint(value, schema, document_), "") << path << body << json::serialize(value);
    called_.insert(verb);
    return value;
  }
  void describe_streams() {
    const std::string who = R"("instance":"01930000-0000-7000-8000-0000000000a1")";
    const std::string message = R"("message":"01930000-0000-7000-8000-000000000001")";
    const std::string held = "{" + who + R"(,"lane":"inbox","held":[{)" + message + "}]}";
    call("stream_heartbeat", "{" + who + R"(,"service":"orders","about":{"version":2}})");
    call("stream_store",
         "{" + who + R"(,"lane":"inbox","messages":[{)" + message +
             R"(,"stream":"01930000-0000-7000-8000-0000000000f1","type":"T","data":{"a":[1]}}]})");
    call("stream_wait", "{" + who + "}");
    call("stream_claim", "{" + who + "}");
    call("stream_renew", held);
    call("stream_resume", "{" + who + "}");
    call("stream_fail",
         "{" + who + R"(,"lane":"inbox","failures":[{)" + message + R"(,"error":"no","policy":1}]})");
    call("stream_status", "{}");
    call("stream_instances", "{}");
    call("stream_why", "{" + message + "}");
    call("stream_letters", "{}");
    call("stream_replay", R"({"letter":[1],"last_letter":1})");
    call("stream_lag", "{}");
    call("stream_partitions", "{}");
    call("process_work_batch", "{" + who + R"(,"service":"orders","new_outbox_messages":[{)" + message +
                                   R"(,"target":"mail","type":"T","data":1}]})");
    call("stream_complete",
         "{" + who + R"(,"lane":"outbox","completions":[{)" + message + R"(,"status":4}]})");
    call("stream_release", held);
    call("stream_purge", R"({"letter":[1]})");
    call("stream_leave", "{" + who + "}");
    call("stream_claim", "{" + who + "}");  // refused
  }
  // A group of one, which meets whenever it comes.
  void describe_groups() {
    const std::string rank = R"("group":"g","rank":0,"incarnation":"a")";
    const auto joined = call("group_join", "{" + rank + R"(,"world_size":1,"where":"here"})");
    const std::string seat = rank + fmt::format(R"(,"generation":{})", joined.at("generation").as_int64());
    call("group_meet", "{" + seat + R"(,"number":0,"kind":"all_gather","name":"n","contribution":"mine"})");
    call("group_meet",
         "{" + seat + R"(,"number":1,"kind":"barrier","name":"n","error_code":"NO_SPACE","error":"full"})");
    call("group_watch", "{" + seat + R"(,"doing":"this"})");
    call("group_stop", "{" + seat + R"(,"number":2})");
    call("group_resume", "{" + seat + R"(,"world_size":1,"number":1,"kind":"barrier","name":"n"})");
    call("group_members", R"({"group":"g"})");
    call("groups", "{}");
    call("group_leave", "{" + seat + "}");
    call("group_watch", "{" + seat + "}");  // refused
  }
  static std::string text(const json::value& value) { return std::string(value.as_string()); }

  Backstage stage_;
  const Pages no_pages_ = [](std::string_view, const PrincipalRef&) { return std::optional<Page>(); };
  HttpSession session_{stage_.desk(), stage_.access, {}, no_pages_, [] {}};
  const json::object document_ = json::parse(openapi_json()).as_object();
  std::set<std::string> called_;
};

// X8
TEST_F(Document, DescribesWhatEveryVerbReplies) {
  const std::string first =
      text(call("submit", R"({"queue":"q","payload":"a","key":"k","capability":["gpu"]})").at("task"));
  call("submit", R"({"queue":"q","payload":"b","key":"k"})");
  call("submitmany", R"({"queue":"q","payloads":["b","c","d"]})");
  const auto leased = call("lease", R"({"worker":"w","queue":"q","capability":["gpu"],"count":2})");
  const auto& jobs = leased.at("tasks").as_array();
  ASSERT_EQ(jobs.size(), 2u);
  const auto hold = [&](std::size_t at) {
    return fmt::format(R"("task":"{}","lease":"{}")", text(jobs[at].at("task")), text(jobs[at].at("lease")));
  };
  call("get", fmt::format(R"({{"task":"{}"}})", first));
  call("extend", "{" + hold(0) + "}");
  call("extendmany", fmt::format(R"({{"leases":["{} {}","1-2 1-2-3"]}})", text(jobs[0].at("task")),
                                 text(jobs[0].at("lease"))));
  call("fail", "{" + hold(1) + R"(,"reason":"why","delay_ms":1000})");
  call("fail", "{" + hold(1) + R"(,"reason":"why"})");
  const auto next = call("next", "{" + hold(0) + R"(,"worker":"w","queue":"q","result":"r"})");
  const auto& job = next.at("tasks").at(0);
  call("release",
       fmt::format(R"({{"task":"{}","lease":"{}"}})", text(job.at("task")), text(job.at("lease"))));
  call("complete", R"({"task":"1-2","lease":"1-2-3"})");
  call("cancel", fmt::format(R"({{"task":"{}","actor":"me"}})", text(job.at("task"))));
  call("requeue", fmt::format(R"({{"task":"{}"}})", text(job.at("task"))));
  call("wait", fmt::format(R"({{"task":"{}","wait_ms":1}})", text(job.at("task"))));
  call("get", fmt::format(R"({{"task":"{}"}})", text(job.at("task"))));
  call("tasks", R"({"queue":"q"})");
  call("heartbeat", R"({"worker":"w","capacity":3})");
  call("lease", R"({"worker":"v","queue":"q"})");
  call("workers", "{}");
  call("stats", "{}");
  call("pause", R"({"queue":"q"})");
  call("queues", "{}");
  call("resume", R"({"queue":"q"})");
  call("purge", R"({"queue":"q"})");
  describe_streams();
  describe_groups();
  called_.insert("events");        // what it streams is shown with the stream
  called_.insert("blobs/{hash}");  // bytes, and no JSON
  for (const auto& [path, described] : document_.at("paths").as_object()) {
    if (!path.starts_with("/v1/")) continue;  // a page
    EXPECT_TRUE(called_.contains(std::string(path).substr(4))) << path << " was not tried";
  }
}

TEST_F(Document, ListsEveryVerb) {
  std::size_t verbs = 0;
  for (const auto& family : verb_families()) verbs += family.size();
  EXPECT_EQ(document_.at("paths").as_object().size(), verbs + 5) << "events, blobs and pages too";
}

// X5: whoever asks for it again and again does not have it made again and again.
TEST_F(Document, IsMadeOnce) { EXPECT_EQ(&openapi_json(), &openapi_json()); }

}  // namespace
}  // namespace baton::server
