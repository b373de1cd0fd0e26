#include "calls.h"

#include <cmath>

namespace baton::python {

void raise(const Error& error) {
  const py::object type = py::module_::import("baton._errors").attr("Error");
  const py::object retry_after =
      error.retry_after.ms > 0 ? py::cast(static_cast<double>(error.retry_after.ms) / 1000) : py::none();
  const py::object raised =
      type(py::str(word(error.code).data(), word(error.code).size()),
           py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(
               error.message.data(), static_cast<Py_ssize_t>(error.message.size()), "replace")),
           retry_after);
  PyErr_SetObject(type.ptr(), raised.ptr());
  throw py::error_already_set();
}

Duration duration_of(double seconds) {
  constexpr double kLongest = 1e12;  // more milliseconds than anybody waits
  if (!(seconds >= 0)) throw py::value_error("a time is a number of seconds, 0 or more");
  return {static_cast<std::int64_t>(std::ceil(std::min(seconds * 1000, kLongest)))};
}

}  // namespace baton::python
