#include "pipeline/report_json.h"

#include <utility>
#include <vector>

#include "pipeline/reservation.h"
#include "pipeline/value.h"

namespace baton::pipeline {
namespace {

Value text(std::string_view from) { return {std::string(from)}; }

void mask(Value& value, const Secrets& secrets) {
  if (auto* text = std::get_if<std::string>(&value.is)) *text = secrets.mask(*text);
  if (auto* list = std::get_if<Value::List>(&value.is)) {
    for (Value& one : *list) mask(one, secrets);
  }
  if (auto* fields = std::get_if<Value::Fields>(&value.is)) {
    for (auto& [name, one] : *fields) mask(one, secrets);
  }
}

// What a module came to, as everybody may see it. It says itself what of it is secret elsewhere.
Value for_everybody(Value result, Secrets secrets) {
  if (auto* fields = std::get_if<Value::Fields>(&result.is)) {
    const Value* own = result.field("secrets");
    for (const Value& one : own && own->list() ? *own->list() : Value::List())
      if (one.text()) secrets.add("=" + *one.text(), *one.text());
    std::erase_if(*fields, [](const auto& field) { return field.first == "secrets"; });
  }
  mask(result, secrets);
  return result;
}

}  // namespace

std::string to_json(const RunReport& report, const std::map<std::string, std::string>& values,
                    const Secrets& secrets) {
  Value::List modules;
  for (const ModuleReport& one : report.modules) {
    Value::Fields fields = {{"id", text(one.id)},
                            {"status", text(word(one.status))},
                            {"reason", text(one.reason)},
                            {"cache", text(one.cache)},
                            {"worker", text(one.worker)},
                            {"attempt", Value{std::int64_t{one.attempt}}},
                            {"tries", Value{std::int64_t{one.tries}}},
                            {"began_ms", Value{one.began_at.ms}},
                            {"queue_ms", Value{queue_wait(one).ms}},
                            {"transfer_ms", Value{one.transfer.ms}},
                            {"took_ms", Value{one.took.ms}}};
    if (const auto value = values.find(one.id); value != values.end()) {
      if (auto result = from_json(value->second))
        fields.emplace_back("result", for_everybody(std::move(*result), secrets));
    }
    if (one.failure.kind != FailureKind::none) {
      fields.emplace_back("failure",
                          Value{Value::Fields{{"kind", text(word(one.failure.kind))},
                                              {"message", text(one.failure.message)},
                                              {"detail", text(one.failure.detail)},
                                              {"exit_code", Value{std::int64_t{one.failure.exit_code}}}}});
    }
    modules.push_back({std::move(fields)});
  }
  Value::List workers;
  for (const RegisteredWorker& one : report.workers) {
    workers.push_back({Value::Fields{{"index", Value{std::int64_t{one.registration.index}}},
                                     {"name", text(one.registration.name)},
                                     {"capabilities", Codec<std::vector<std::string>>::encode(
                                                          without_unreserved(one.registration.capabilities))},
                                     {"reserved", Value{is_reserved(one.registration.capabilities)}},
                                     {"slots", Value{std::int64_t{one.registration.slots}}},
                                     {"status", text(word(one.status))}}});
  }
  Value::List times;
  for (const WorkerTimes& one : report.times) {
    times.push_back({Value::Fields{{"worker", Value{std::int64_t{one.index}}},
                                   {"modules", Value{static_cast<std::int64_t>(one.modules)}},
                                   {"busy_ms", Value{one.busy.ms}},
                                   {"idle_ms", Value{one.idle.ms}}}});
  }
  return to_json(Value{Value::Fields{{"run", text(report.run)},
                                     {"pipeline", text(report.pipeline)},
                                     {"outcome", text(word(report.outcome))},
                                     {"reason", text(report.reason)},
                                     {"began_at_ms", Value{report.began_at.ms}},
                                     {"took_ms", Value{report.took.ms}},
                                     {"modules", Value{std::move(modules)}},
                                     {"workers", Value{std::move(workers)}},
                                     {"times", Value{std::move(times)}}}});
}

}  // namespace baton::pipeline
