// How to reach a coordinator, as Python says it: a dict, of which what is left out keeps its usual value.
#pragma once

#include <pybind11/pybind11.h>

#include "client/client.h"

namespace baton::python {

client::ClientOptions client_options(const pybind11::dict& connection);

}  // namespace baton::python
