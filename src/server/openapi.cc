#include "server/openapi.h"

#include <boost/json.hpp>

#include "server/blob_transfer.h"
#include "server/event_stream.h"
#include "server/verb.h"

namespace baton::server {
namespace {

namespace json = boost::json;

json::object reference(std::string_view schema) {
  return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

json::object schema_of(const Parameter& parameter) {
  json::object schema;
  switch (parameter.kind) {
    case Kind::text:
    case Kind::bytes: schema = {{"type", "string"}}; break;
    case Kind::number: schema = {{"type", "integer"}, {"minimum", 0}}; break;
    case Kind::flag: schema = {{"type", "boolean"}}; break;
    case Kind::json: break;  // any value
  }
  const bool list = parameter.place == Place::counted || parameter.place == Place::repeated;
  if (list) schema = {{"type", "array"}, {"items", schema}};
  schema["description"] = parameter.about;
  return schema;
}

constexpr std::string_view kNamespace = "Namespace; \"default\" if not given";

// Bytes may come as text or as base64, so neither is required by the schema; the server says what is missing.
json::object body_of(const Verb& verb) {
  json::object properties{{"namespace", {{"type", "string"}, {"description", kNamespace}}}};
  json::array required;
  for (const Parameter& parameter : verb.parameters) {
    properties[parameter.name] = schema_of(parameter);
    const bool needed = parameter.place == Place::position || parameter.place == Place::counted;
    if (parameter.kind == Kind::bytes) {
      json::object encoded = schema_of(parameter);
      encoded["contentEncoding"] = "base64";
      properties[std::string(parameter.name) + "_base64"] = std::move(encoded);
    } else if (needed) {
      required.emplace_back(parameter.name);
    }
  }
  json::object schema{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

json::array query_of(std::span<const Parameter> given) {
  json::array parameters{{{"name", "namespace"},
                          {"in", "query"},
                          {"schema", {{"type", "string"}}},
                          {"description", kNamespace}}};
  for (const Parameter& parameter : given) {
    parameters.push_back({{"name", parameter.name},
                          {"in", "query"},
                          {"required", parameter.place == Place::position},
                          {"description", parameter.about},
                          {"schema", schema_of(parameter)}});
  }
  return parameters;
}

json::object content(json::object schema) {
  return {{"content", {{"application/json", {{"schema", std::move(schema)}}}}}};
}

json::object responses_of(const Verb& verb) {
  json::object good = content(reference(verb.reply));
  good["description"] = "Durable";
  json::object bad = content(reference("Refusal"));
  bad["description"] = "Refused; nothing was changed";
  return {{"200", std::move(good)}, {"default", std::move(bad)}};
}

json::object path_of(const Verb& verb) {
  const std::string name(verb.name);
  json::object body = content(body_of(verb));
  body["required"] = true;
  json::object path;
  path["post"] = {{"operationId", name},
                  {"summary", verb.about},
                  {"requestBody", std::move(body)},
                  {"responses", responses_of(verb)}};
  if (verb.permission == Permission::query)
    path["get"] = {{"operationId", name + "_get"},
                   {"summary", verb.about},
                   {"parameters", query_of(verb.parameters)},
                   {"responses", responses_of(verb)}};
  return path;
}

json::object events_path() {
  json::object stream{
      {"description", "Events, each with the lsn of its entry as its id; docs/protocol.md lists them"},
      {"content", {{"text/event-stream", {{"schema", {{"type", "string"}}}}}}}};
  json::object bad = content(reference("Refusal"));
  bad["description"] = "Refused";
  return {{"get",
           {{"operationId", "events"},
            {"summary", "What happens from now on, as server-sent events"},
            {"parameters", query_of(event_parameters())},
            {"responses", {{"200", std::move(stream)}, {"default", std::move(bad)}}}}}};
}

json::object blobs_path() {
  const json::object bytes{
      {"application/octet-stream", {{"schema", {{"type", "string"}, {"format", "binary"}}}}}};
  const auto operation = [&](const char* id, const char* summary, const char* status, json::object good) {
    json::object bad = content(reference("Refusal"));
    bad["description"] = "Refused";
    return json::object{{"operationId", id},
                        {"summary", summary},
                        {"responses", {{status, std::move(good)}, {"default", std::move(bad)}}}};
  };
  json::array parameters = query_of(blob_parameters());
  parameters.push_back({{"name", "hash"},
                        {"in", "path"},
                        {"required", true},
                        {"description", "The SHA-256 of the bytes, as hexadecimal digits"},
                        {"schema", {{"type", "string"}}}});
  json::object put = operation("put_blob", "Stores bytes of a task that are too many for the log", "201",
                               {{"description", "It is durable"}});
  put["requestBody"] = {{"required", true}, {"content", bytes}};
  return {
      {"parameters", std::move(parameters)},
      {"put", std::move(put)},
      {"get", operation("get_blob", "The bytes", "200", {{"description", "The bytes"}, {"content", bytes}})},
      {"head", operation("has_blob", "Whether they are there, and how many", "200",
                         {{"description", "They are there"}})}};
}

json::object page_path(std::string_view summary, bool is_open_to_all) {
  json::object good{{"description", "As text"},
                    {"content", {{"text/plain", {{"schema", {{"type", "string"}}}}}}}};
  json::object get{
      {"summary", summary},
      {"responses", {{"200", std::move(good)}, {"default", {{"description", "Refused, or not so"}}}}}};
  if (is_open_to_all) get["security"] = json::array();
  return {{"get", std::move(get)}};
}

// What verbs reply. A test holds the real replies against these.
constexpr std::string_view kSchemas = R"({
  "Refusal": {"type": "object", "required": ["error"], "properties": {"error": {"type": "object",
    "required": ["code", "message"], "properties": {"code": {"type": "string"},
    "message": {"type": "string"}, "retry_after_ms": {"type": "integer"}}}}},
  "Submitted": {"type": "object", "required": ["lsn", "task", "existed"], "properties": {
    "lsn": {"type": "integer"}, "task": {"type": "string"}, "existed": {"type": "boolean"}}},
  "ManySubmitted": {"type": "array", "items": {"anyOf": [
    {"$ref": "#/components/schemas/Submitted"}, {"$ref": "#/components/schemas/Refusal"}]}},
  "Committed": {"type": "object", "required": ["lsn", "status"], "properties": {"lsn": {"type": "integer"},
    "status": {"enum": ["COMMITTED", "CANCELLED"]}, "outcome": {"type": "string"}, "retry_at": {"type": "integer"}}},
  "Job": {"type": "object", "required": ["task", "lease", "fence", "queue", "attempt", "ttl_ms"], "properties": {
    "task": {"type": "string"}, "lease": {"type": "string"}, "fence": {"type": "string"},
    "queue": {"type": "string"}, "attempt": {"type": "integer"}, "ttl_ms": {"type": "integer"}, "payload": {"type": "string"},
    "payload_base64": {"type": "string"}}},
  "Leased": {"type": "object", "required": ["lsn", "tasks"], "properties": {"lsn": {"type": "integer"},
    "completed": {"anyOf": [{"$ref": "#/components/schemas/Committed"}, {"$ref": "#/components/schemas/Refusal"}]},
    "tasks": {"anyOf": [{"type": "array", "items": {"$ref": "#/components/schemas/Job"}},
      {"$ref": "#/components/schemas/Refusal"}]}}},
  "Extended": {"type": "object", "required": ["lsn", "ttl_ms"], "properties": {
    "lsn": {"type": "integer"}, "ttl_ms": {"type": "integer"}}},
  "ManyExtended": {"type": "object", "required": ["lsn", "leases"], "properties": {"lsn": {"type": "integer"},
    "leases": {"type": "array", "items": {"anyOf": [{"type": "object", "required": ["ttl_ms"],
      "properties": {"ttl_ms": {"type": "integer"}}}, {"$ref": "#/components/schemas/Refusal"}]}}}},
  "TaskView": {"type": "object", "required": ["task", "queue", "state", "priority", "attempt", "failures",
    "created_at", "since"], "properties": {"task": {"type": "string"}, "queue": {"type": "string"},
    "state": {"enum": ["waiting", "leased", "completed", "failed", "dead"]}, "priority": {"type": "integer"},
    "attempt": {"type": "integer"}, "failures": {"type": "integer"}, "created_at": {"type": "integer"},
    "since": {"type": "integer"}, "key": {"type": "string"}, "worker": {"type": "string"},
    "fence": {"type": "string"}, "lease_expiry": {"type": "integer"}, "dead_reason": {"type": "string"},
    "retry_of": {"type": "string"}, "capabilities": {"type": "string"}}},
  "Task": {"type": "object", "required": ["lsn", "task"], "properties": {"lsn": {"type": "integer"},
    "task": {"$ref": "#/components/schemas/TaskView"}, "payload": {"type": "string"},
    "payload_base64": {"type": "string"}, "result": {"type": "string"}, "result_base64": {"type": "string"},
    "reason": {"type": "string"}, "reason_base64": {"type": "string"}}},
  "Tasks": {"type": "object", "required": ["lsn", "tasks", "cursor"], "properties": {"lsn": {"type": "integer"},
    "tasks": {"type": "array", "items": {"$ref": "#/components/schemas/TaskView"}}, "cursor": {"type": "integer"}}},
  "Queues": {"type": "object", "required": ["lsn", "queues", "cursor"], "properties": {"lsn": {"type": "integer"},
    "queues": {"type": "array", "items": {"type": "object", "required": ["queue", "paused", "delayed", "waiting",
      "leased", "completed", "failed", "dead"], "properties": {"queue": {"type": "string"},
      "paused": {"type": "boolean"}, "delayed": {"type": "integer"}, "waiting": {"type": "integer"},
      "leased": {"type": "integer"}, "completed": {"type": "integer"}, "failed": {"type": "integer"},
      "dead": {"type": "integer"}}}}, "cursor": {"type": "string"}}},
  "Tally": {"type": "object", "required": ["queues", "waiting", "leased", "completed", "failed", "dead"],
    "properties": {"name": {"type": "string"}, "payload_bytes": {"type": "integer"}, "queues": {"type": "integer"}, "waiting": {"type": "integer"},
      "leased": {"type": "integer"}, "completed": {"type": "integer"}, "failed": {"type": "integer"},
      "dead": {"type": "integer"}}},
  "StreamTally": {"type": "object", "required": ["services", "instances", "streams", "waiting", "held", "dead"],
    "properties": {"services": {"type": "integer"}, "instances": {"type": "integer"}, "streams": {"type": "integer"},
      "waiting": {"type": "integer"}, "held": {"type": "integer"}, "dead": {"type": "integer"}}},
  "Stats": {"type": "object", "required": ["lsn", "server", "tasks", "namespace", "streams"], "properties": {
    "lsn": {"type": "integer"}, "server": {"type": "object", "required": ["version", "uptime_ms", "epoch",
      "recovery_ms", "memory_bytes", "connections_resp", "connections_http", "workers", "leases", "commands",
      "refusals", "durable_lag", "flushes", "flush_p50_us", "flush_p99_us", "flushed_entries",
      "flushed_bytes", "batch_entries", "disk", "disk_free_bytes"], "properties": {"version": {"type": "string"},
      "uptime_ms": {"type": "integer"}, "epoch": {"type": "integer"}, "recovery_ms": {"type": "integer"},
      "memory_bytes": {"type": "integer"}, "connections_resp": {"type": "integer"},
      "connections_http": {"type": "integer"}, "workers": {"type": "integer"}, "leases": {"type": "integer"},
      "commands": {"type": "integer"}, "refusals": {"type": "integer"}, "durable_lag": {"type": "integer"},
      "flushes": {"type": "integer"}, "flush_p50_us": {"type": "integer"}, "flush_p99_us": {"type": "integer"},
      "flushed_entries": {"type": "integer"}, "flushed_bytes": {"type": "integer"},
      "batch_entries": {"type": "integer"},
      "disk": {"type": "string", "enum": ["ok", "nearly_full", "full"]}, "disk_free_bytes": {"type": "integer"}}},
    "tasks": {"$ref": "#/components/schemas/Tally"}, "namespace": {"$ref": "#/components/schemas/Tally"},
    "streams": {"$ref": "#/components/schemas/StreamTally"}}},
  "Workers": {"type": "object", "required": ["lsn", "workers", "cursor"], "properties": {
    "lsn": {"type": "integer"}, "workers": {"type": "array", "items": {"type": "object",
      "required": ["worker", "leases", "capacity", "capabilities"], "properties": {"worker": {"type": "string"},
      "leases": {"type": "integer"}, "capacity": {"type": "integer"}, "capabilities": {"type": "string"},
      "silent_ms": {"type": "integer"}}}}, "cursor": {"type": "integer"}}},
  "Heard": {"type": "object", "required": ["lsn", "leases"], "properties": {
    "lsn": {"type": "integer"}, "leases": {"type": "integer"}}},
  "Verdicts": {"type": "array", "items": {"enum": ["ok", "lost_lease", "unknown", "duplicate"]}},
  "Work": {"type": "object", "required": ["lane", "message", "epoch", "partition", "sequence", "target",
    "type", "envelope_type", "data", "metadata", "scope", "status", "flags", "deliveries", "failures", "reason",
    "error"], "properties": {"lane": {"enum": ["outbox", "inbox"]}, "message": {"type": "string"},
    "epoch": {"type": "integer"}, "stream": {"type": "string"}, "partition": {"type": "integer"},
    "sequence": {"type": "integer"}, "target": {"type": "string"}, "type": {"type": "string"},
    "envelope_type": {"type": "string"}, "data": {"type": "string"}, "metadata": {"type": "string"},
    "scope": {"type": "string"}, "status": {"type": "integer"}, "flags": {"type": "integer"},
    "deliveries": {"type": "integer"}, "failures": {"type": "integer"}, "reason": {"type": "integer"},
    "error": {"type": "string"}}},
  "HeldWork": {"type": "object", "required": ["lsn", "work", "cursor"], "properties": {"lsn": {"type": "integer"},
    "work": {"type": "array", "items": {"$ref": "#/components/schemas/Work"}}, "cursor": {"type": "integer"}}},
  "WorkBatch": {"type": "object", "required": ["lsn", "rank", "active", "work"], "properties": {
    "lsn": {"type": "integer"}, "rank": {"type": "integer"}, "active": {"type": "integer"},
    "outbox_completions": {"$ref": "#/components/schemas/Verdicts"},
    "inbox_completions": {"$ref": "#/components/schemas/Verdicts"},
    "outbox_failures": {"$ref": "#/components/schemas/Verdicts"},
    "inbox_failures": {"$ref": "#/components/schemas/Verdicts"},
    "receptor_completions": {"$ref": "#/components/schemas/Verdicts"},
    "receptor_failures": {"$ref": "#/components/schemas/Verdicts"},
    "perspective_completions": {"$ref": "#/components/schemas/Verdicts"},
    "perspective_failures": {"$ref": "#/components/schemas/Verdicts"},
    "outbox_renewals": {"$ref": "#/components/schemas/Verdicts"},
    "inbox_renewals": {"$ref": "#/components/schemas/Verdicts"},
    "new_outbox_messages": {"$ref": "#/components/schemas/Verdicts"},
    "new_inbox_messages": {"$ref": "#/components/schemas/Verdicts"},
    "work": {"type": "array", "items": {"$ref": "#/components/schemas/Work"}}}},
  "Joined": {"type": "object", "required": ["lsn", "generation"], "properties": {
    "lsn": {"type": "integer"}, "generation": {"type": "integer"}}},
  "Noted": {"type": "object", "required": ["lsn"], "properties": {"lsn": {"type": "integer"}}},
  "Watched": {"type": "object", "required": ["lsn"], "properties": {
    "lsn": {"type": "integer"}, "waited_for": {"type": "string"}}},
  "Met": {"type": "object", "required": ["lsn"], "properties": {"lsn": {"type": "integer"},
    "error_code": {"type": "string"}, "error": {"type": "string"},
    "share": {"type": "array", "items": {"type": "object", "properties": {
      "bytes": {"type": "string"}, "bytes_base64": {"type": "string"}}}}}},
  "Members": {"type": "object", "required": ["lsn", "generation", "members"], "properties": {
    "lsn": {"type": "integer"}, "generation": {"type": "integer"}, "members": {"type": "array", "items": {
      "type": "object", "required": ["rank", "state", "where", "at", "doing", "silent_ms"], "properties": {
      "rank": {"type": "integer"}, "state": {"enum": ["not joined", "expected", "here", "left", "lost"]},
      "where": {"type": "string"}, "at": {"type": "string"}, "doing": {"type": "string"},
      "silent_ms": {"type": "integer"}}}}}},
  "Groups": {"type": "object", "required": ["lsn", "groups"], "properties": {"lsn": {"type": "integer"},
    "groups": {"type": "array", "items": {"type": "object", "required": ["group", "generation", "world_size"],
      "properties": {"group": {"type": "string"}, "generation": {"type": "integer"},
      "world_size": {"type": "integer"}}}}}},
  "WorkAwaited": {"type": "object", "required": ["lsn", "woken"], "properties": {
    "lsn": {"type": "integer"}, "woken": {"type": "boolean"}}},
  "StreamLanes": {"type": "object", "required": ["lsn", "lanes", "cursor"], "properties": {"lsn": {"type": "integer"},
    "lanes": {"type": "array", "items": {"type": "object", "required": ["service", "lane", "waiting", "held", "dead",
      "streams", "held_streams", "parked_streams"], "properties": {"service": {"type": "string"},
      "lane": {"enum": ["outbox", "inbox"]}, "waiting": {"type": "integer"}, "held": {"type": "integer"},
      "dead": {"type": "integer"}, "streams": {"type": "integer"}, "held_streams": {"type": "integer"},
      "parked_streams": {"type": "integer"}, "oldest_claimable_ms": {"type": "integer"}}}},
    "cursor": {"type": "integer"}}},
  "StreamInstances": {"type": "object", "required": ["lsn", "instances", "cursor"], "properties": {
    "lsn": {"type": "integer"}, "instances": {"type": "array", "items": {"type": "object", "required": ["service",
      "instance", "host", "process", "silent_ms", "is_stale", "held_streams", "held_messages"], "properties": {
      "service": {"type": "string"}, "instance": {"type": "string"}, "rank": {"type": "integer"},
      "host": {"type": "string"}, "process": {"type": "integer"}, "silent_ms": {"type": "integer"},
      "is_stale": {"type": "boolean"}, "held_streams": {"type": "integer"},
      "held_messages": {"type": "integer"}}}}, "cursor": {"type": "integer"}}},
  "StreamLag": {"type": "object", "required": ["lsn", "streams", "complete"], "properties": {
    "lsn": {"type": "integer"}, "complete": {"type": "boolean"}, "streams": {"type": "array", "items": {"type": "object", "required": ["service", "lane", "stream", "partition",
      "messages", "waits_ms", "state"], "properties": {"service": {"type": "string"},
      "lane": {"enum": ["outbox", "inbox"]}, "stream": {"type": "string"}, "partition": {"type": "integer"},
      "messages": {"type": "integer"}, "waits_ms": {"type": "integer"}, "state": {"type": "string"}}}}}},
  "StreamPartitions": {"type": "object", "required": ["lsn", "partitions", "complete"], "properties": {
    "lsn": {"type": "integer"}, "complete": {"type": "boolean"}, "partitions": {"type": "array", "items": {"type": "object", "required": ["service", "lane", "partition",
      "streams", "messages"], "properties": {"service": {"type": "string"}, "lane": {"enum": ["outbox", "inbox"]},
      "partition": {"type": "integer"}, "streams": {"type": "integer"}, "messages": {"type": "integer"},
      "oldest_claimable_ms": {"type": "integer"}, "offered_to": {"type": "string"}}}}}},
  "StreamWhy": {"type": "object", "required": ["lsn", "answers"], "properties": {"lsn": {"type": "integer"},
    "answers": {"type": "array", "items": {"type": "object", "required": ["question", "answer"], "properties": {
      "question": {"type": "string"}, "answer": {"type": "string"}}}}}},
  "StreamLetters": {"type": "object", "required": ["lsn", "letters", "cursor"], "properties": {
    "lsn": {"type": "integer"}, "letters": {"type": "array", "items": {"anyOf": [
      {"$ref": "#/components/schemas/DeadLetter"}, {"$ref": "#/components/schemas/Refusal"}]}},
    "cursor": {"type": "integer"}}},
  "DeadLetter": {"type": "object", "required": ["letter", "service", "lane", "message", "target", "type",
    "envelope_type", "data", "metadata", "scope", "status", "deliveries", "failures", "reason", "error",
    "parks_stream", "dead_ms", "instance"], "properties": {"letter": {"type": "integer"},
    "service": {"type": "string"}, "lane": {"enum": ["outbox", "inbox"]}, "message": {"type": "string"},
    "stream": {"type": "string"}, "partition": {"type": "integer"}, "sequence": {"type": "integer"},
    "target": {"type": "string"}, "type": {"type": "string"}, "envelope_type": {"type": "string"},
    "data": {"type": "string"}, "metadata": {"type": "string"}, "scope": {"type": "string"},
    "status": {"type": "integer"}, "deliveries": {"type": "integer"}, "failures": {"type": "integer"},
    "reason": {"type": "integer"}, "error": {"type": "string"}, "parks_stream": {"type": "boolean"},
    "dead_ms": {"type": "integer"}, "instance": {"type": "string"}}},
  "Purged": {"type": "object", "required": ["lsn", "purged"], "properties": {
    "lsn": {"type": "integer"}, "purged": {"type": "integer"}, "last_letter": {"type": "integer"}}}
})";

std::string make_document() {
  json::object paths;
  for (const auto& verbs : verb_families()) {
    for (const Verb& verb : verbs) paths["/v1/" + std::string(verb.name)] = path_of(verb);
  }
  paths[kEventsPath] = events_path();
  paths[std::string(kBlobsPath) + "{hash}"] = blobs_path();
  paths["/metrics"] = page_path("Figures for Prometheus", false);
  paths["/healthz"] = page_path("Whether the server lives", true);
  paths["/readyz"] = page_path("Whether the server takes requests", true);
  const json::object token{
      {"type", "http"},
      {"scheme", "bearer"},
      {"description", "A token, where the server asks for one: not on loopback without --tokens"}};
  const json::object document{
      {"openapi", "3.1.0"},
      {"info", {{"title", "baton"}, {"version", BATON_VERSION}}},
      {"paths", std::move(paths)},
      {"security", {{{"token", json::array()}}, json::object()}},
      {"components", {{"schemas", json::parse(kSchemas)}, {"securitySchemes", {{"token", token}}}}},
  };
  return json::serialize(document);
}

}  // namespace

const std::string& openapi_json() {
  static const std::string text = make_document();
  return text;
}

}  // namespace baton::server
