// The client of tasks. Calls begin here and come back on the client's own thread, which never touches Python.
#include <pybind11/stl.h>

#include <memory>

#include "bindings.h"
#include "calls.h"
#include "client/client.h"
#include "client_options.h"
#include "seat.h"

namespace baton::python {

using namespace client;

namespace {

py::bytes bytes_to_python(const std::string& text) { return {text.data(), text.size()}; }
double seconds_of(Duration duration) { return static_cast<double>(duration.ms) / 1000; }
double seconds_of(Instant instant) { return static_cast<double>(instant.ms) / 1000; }

TaskOptions task_options(const py::dict& given) {
  TaskOptions options;
  const auto number = [&](const char* name, auto& field) {
    if (given.contains(name)) field = given[name].cast<std::uint32_t>();
  };
  const auto time = [&](const char* name, auto& field) {
    if (given.contains(name)) field = duration_of(given[name].cast<double>());
  };
  number("priority", options.priority);
  time("delay", options.delay);
  if (given.contains("capabilities"))
    options.capabilities = given["capabilities"].cast<std::vector<std::string>>();
  number("max_failures", options.max_failures);
  time("backoff", options.backoff);
  time("backoff_max", options.backoff_max);
  number("max_attempts", options.max_attempts);
  time("max_hold", options.max_hold);
  return options;
}

std::shared_ptr<Client> open_client(const py::dict& connection) {
  return make_unlocked<Client>(client_options(connection));
}

Submitted submit(Client& client, const std::string& queue, const py::bytes& payload, const std::string& key,
                 const py::dict& options, double deadline) {
  const Submit request{queue, payload, key, task_options(options)};
  return await<Submitted>([&](const auto& done) { client.submit(request, done, duration_of(deadline)); });
}

py::list submit_many(Client& client, const std::string& queue, const std::vector<py::bytes>& payloads,
                     const std::vector<std::string>& keys, const py::dict& options, double deadline) {
  SubmitMany request{queue, {}, keys, task_options(options)};
  for (const py::bytes& payload : payloads) request.payloads.emplace_back(payload);
  py::list submitted;
  for (Result<Submitted>& each : await<std::vector<Result<Submitted>>>(
           [&](const auto& done) { client.submit_many(request, done, duration_of(deadline)); })) {
    // One that was refused takes nothing from the others, so it is an element and not raised.
    if (each) {
      submitted.append(*each);
      continue;
    }
    try {
      raise(each.error());
    } catch (const py::error_already_set& refused) {
      submitted.append(refused.value());
    }
  }
  return submitted;
}

std::vector<Leased> lease(const std::shared_ptr<Client>& client, const std::string& worker,
                          const std::vector<std::string>& queues, std::uint32_t count, double ttl,
                          double wait, const std::vector<std::string>& capabilities, double deadline) {
  const Lease request{worker, queues, count, duration_of(ttl), duration_of(wait), capabilities};
  if (wait <= 0)
    return await<std::vector<Leased>>(
        [&](const auto& done) { client->lease(request, done, duration_of(deadline)); });
  return run(py::none(), [client, request, within = duration_of(deadline)](std::stop_token stop) {
    return client->lease(request, std::move(stop), within);
  });
}

double extend(Client& client, const Held& held, double ttl, double deadline) {
  return seconds_of(await<Duration>(
      [&](const auto& done) { client.extend(held, duration_of(ttl), done, duration_of(deadline)); }));
}

Verdict complete(Client& client, const Held& held, const py::bytes& result, double deadline) {
  return await<Verdict>(
      [&](const auto& done) { client.complete(held, result, done, duration_of(deadline)); });
}

Verdict fail(Client& client, const Held& held, const py::bytes& reason, bool final, double delay,
             double deadline) {
  const Failure failed{reason, final, duration_of(delay)};
  return await<Verdict>([&](const auto& done) { client.fail(held, failed, done, duration_of(deadline)); });
}

Verdict release(Client& client, const Held& held, double deadline) {
  return await<Verdict>([&](const auto& done) { client.release(held, done, duration_of(deadline)); });
}

void cancel(Client& client, const std::string& task, double deadline) {
  await<void>([&](const auto& done) { client.cancel(task, {}, {}, done, duration_of(deadline)); });
}

Task get(Client& client, const std::string& task, double deadline) {
  return await<Task>([&](const auto& done) { client.get(task, done, duration_of(deadline)); });
}

Task wait(Client& client, const std::string& task, double wait, double deadline) {
  return await<Task>(
      [&](const auto& done) { client.wait(task, duration_of(wait), done, duration_of(deadline)); });
}

void bind_values(py::module_& module) {
  py::class_<Held>(module, "Held").def(py::init<std::string, std::string>());
  py::class_<Submitted>(module, "Submitted")
      .def_readonly("task", &Submitted::task)
      .def_readonly("existed", &Submitted::existed)
      .def("__repr__", [](const Submitted& it) { return "<submitted " + it.task + ">"; });
  py::class_<Leased>(module, "Leased")
      .def_readonly("task", &Leased::task)
      .def_readonly("lease", &Leased::lease)
      .def_readonly("fence", &Leased::fence)
      .def_readonly("queue", &Leased::queue)
      .def_readonly("attempt", &Leased::attempt)
      .def_property_readonly("payload", [](const Leased& it) { return bytes_to_python(it.payload); })
      .def_property_readonly("ttl", [](const Leased& it) { return seconds_of(it.ttl); })
      .def("__repr__", [](const Leased& it) { return "<task " + it.task + " of " + it.queue + ", leased>"; });
  py::class_<Verdict>(module, "Verdict")
      .def_readonly("cancelled", &Verdict::cancelled)
      .def_readonly("outcome", &Verdict::outcome)
      .def("__repr__", [](const Verdict& it) { return "<" + it.outcome + ">"; });
  py::class_<Task>(module, "Task")
      .def_property_readonly("task", [](const Task& it) { return it.view.task; })
      .def_property_readonly("queue", [](const Task& it) { return it.view.queue; })
      .def_property_readonly("state", [](const Task& it) { return it.view.state; })
      .def_property_readonly("key", [](const Task& it) { return it.view.key; })
      .def_property_readonly("attempt", [](const Task& it) { return it.view.attempt; })
      .def_property_readonly("failures", [](const Task& it) { return it.view.failures; })
      .def_property_readonly("worker", [](const Task& it) { return it.view.worker; })
      .def_property_readonly("created_at", [](const Task& it) { return seconds_of(it.view.created_at); })
      .def_property_readonly("ended", [](const Task& it) { return it.view.has_ended(); })
      .def_property_readonly("payload", [](const Task& it) { return bytes_to_python(it.payload); })
      .def_property_readonly("result", [](const Task& it) { return bytes_to_python(it.result); })
      .def_property_readonly("reason", [](const Task& it) { return bytes_to_python(it.reason); })
      .def("__repr__", [](const Task& it) { return "<task " + it.view.task + ", " + it.view.state + ">"; });
}

}  // namespace

void bind_client(py::module_& module) {
  bind_values(module);
  py::class_<Client, std::shared_ptr<Client>>(module, "Calls")
      .def(py::init(&open_client))
      .def("submit", &submit)
      .def("submit_many", &submit_many)
      .def("lease", &lease)
      .def("extend", &extend)
      .def("complete", &complete)
      .def("fail", &fail)
      .def("release", &release)
      .def("cancel", &cancel)
      .def("get", &get)
      .def("wait", &wait);
}

}  // namespace baton::python
