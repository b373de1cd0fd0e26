// What the extension consists of.
#pragma once

#include <pybind11/pybind11.h>

namespace baton::python {

void bind_group(pybind11::module_& module);
void bind_store(pybind11::module_& module);
void bind_client(pybind11::module_& module);

}  // namespace baton::python
