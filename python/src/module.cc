// baton._baton: C++ as the package `baton` uses it. Names and shapes go in, memory is used where it lies;
// what a tensor is in numpy or torch is known in Python alone.
#include "bindings.h"

PYBIND11_MODULE(_baton, module) {
  module.doc() = "The part of the package that is C++; use baton.";
  module.attr("__version__") = BATON_VERSION;
  // Whoever was forked has none of the threads that would have to end first.
  module.def("never_let_go", [](pybind11::object it) { (void)it.release(); });
  baton::python::bind_group(module);
  baton::python::bind_store(module);
  baton::python::bind_client(module);
}
