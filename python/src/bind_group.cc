#include <pybind11/stl.h>

#include "bindings.h"
#include "calls.h"
#include "checkpoint/in_process_collective.h"
#include "checkpoint/server_collective.h"
#include "client_options.h"
#include "seat.h"

namespace baton::python {

using namespace checkpoint;

Turn::Turn(std::shared_ptr<Seat> seat) {
  if (seat->is_taken.exchange(true))
    raise({Errc::wrong_state, "another call of this group is under way; one thread at a time uses it", {}});
  seat_ = std::move(seat);
}

namespace {

struct How {
  How(std::string of, double within) : name(std::move(of)), deadline(duration_of(within)) {}
  Call call(std::stop_token stop) const { return {name, deadline, std::move(stop)}; }

  std::string name;
  Duration deadline;
};

// What a rank brings: bytes; or a str, which says why it has none, and which all ranks hear.
Result<Bytes> brought(const py::object& mine) {
  if (py::isinstance<py::str>(mine)) return failure(Errc::invalid_request, mine.cast<std::string>());
  const auto bytes = mine.cast<py::bytes>();
  const ByteView view = bytes_of(std::string_view(bytes));
  return Bytes(view.begin(), view.end());
}
py::bytes bytes_to_python(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
py::list all_to_python(const std::vector<Bytes>& all) {
  py::list list;
  for (const Bytes& bytes : all) list.append(bytes_to_python(bytes));
  return list;
}

std::shared_ptr<Seat> join(const py::dict& connection, const std::string& group, Rank rank, Rank world_size,
                           double time_to_live, double join_deadline) {
  ServerCollectiveOptions options{.client = client_options(connection),
                                  .group = group,
                                  .rank = rank,
                                  .world_size = world_size,
                                  .time_to_live = duration_of(time_to_live),
                                  .join_deadline = duration_of(join_deadline)};
  return run(py::none(), [options](const std::stop_token&) -> Result<std::shared_ptr<Seat>> {
    auto joined = join_at_server(options);
    if (!joined) return std::unexpected(joined.error());
    return make_unlocked<Seat>(*std::move(joined));
  });
}

// Threads of this process as ranks.
std::vector<std::shared_ptr<Seat>> join_threads(Rank world_size) {
  InProcessGroup group(world_size);
  std::vector<std::shared_ptr<Seat>> seats;
  seats.reserve(world_size);
  for (Rank rank = 0; rank < world_size; ++rank)
    seats.push_back(make_unlocked<Seat>(value_or_raise(group.join(rank))));
  return seats;
}

void barrier(std::shared_ptr<Seat> seat, const std::string& name, double deadline) {
  const How how(name, deadline);
  run(py::none(), [turn = Turn(std::move(seat)), how](std::stop_token stop) {
    return turn.collective().barrier(how.call(std::move(stop)));
  });
}

py::bytes broadcast(std::shared_ptr<Seat> seat, const std::string& name, const py::object& of_root, Rank root,
                    double deadline) {
  const How how(name, deadline);
  return bytes_to_python(run(
      py::none(), [turn = Turn(std::move(seat)), how, mine = brought(of_root), root](std::stop_token stop) {
        return turn.collective().broadcast(how.call(std::move(stop)), checkpoint::brought(mine), root);
      }));
}

py::list gather(std::shared_ptr<Seat> seat, const std::string& name, const py::object& mine, Rank root,
                double deadline) {
  const How how(name, deadline);
  return all_to_python(
      run(py::none(), [turn = Turn(std::move(seat)), how, mine = brought(mine), root](std::stop_token stop) {
        return turn.collective().gather(how.call(std::move(stop)), checkpoint::brought(mine), root);
      }));
}

// Of an operation that tells every rank what all have brought.
template <auto kOperation>
py::list meet_for_all(std::shared_ptr<Seat> seat, const std::string& name, const py::object& mine,
                      double deadline) {
  const How how(name, deadline);
  return all_to_python(
      run(py::none(), [turn = Turn(std::move(seat)), how, mine = brought(mine)](std::stop_token stop) {
        return (turn.collective().*kOperation)(how.call(std::move(stop)), checkpoint::brought(mine));
      }));
}

}  // namespace

void bind_group(py::module_& module) {
  py::class_<Seat, std::shared_ptr<Seat>>(module, "Seat")
      .def_property_readonly("rank", [](const Seat& seat) { return seat.collective->rank(); })
      .def_property_readonly("world_size", [](const Seat& seat) { return seat.collective->world_size(); })
      .def_property_readonly("generation", [](const Seat& seat) { return seat.collective->generation(); })
      .def("tell_doing", [](Seat& seat, const std::string& doing) { seat.collective->tell_doing(doing); })
      .def("barrier", &barrier)
      .def("broadcast", &broadcast)
      .def("gather", &gather)
      .def("all_gather", &meet_for_all<&Collective::all_gather>)
      .def("all_to_reduce", &meet_for_all<&Collective::all_to_reduce>);
  module.def("join", &join);
  module.def("join_threads", &join_threads);
}

}  // namespace baton::python
