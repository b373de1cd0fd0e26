#include "client_options.h"

#include <pybind11/stl.h>

#include "calls.h"

namespace baton::python {

client::ClientOptions client_options(const py::dict& connection) {
  client::ClientOptions options;
  const auto set = [&](const char* name, auto& field) {
    if (connection.contains(name)) field = connection[name].cast<std::remove_reference_t<decltype(field)>>();
  };
  set("addresses", options.addresses);
  set("user", options.user);
  set("token", options.token);
  set("namespace", options.ns);
  if (connection.contains("deadline")) options.deadline = duration_of(connection["deadline"].cast<double>());
  if (connection.contains("tls")) {
    client::TlsOptions& tls = options.tls.emplace();
    set("ca", tls.ca);
    set("certificate", tls.certificate);
    set("key", tls.key);
  }
  return options;
}

}  // namespace baton::python
