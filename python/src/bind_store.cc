// Checkpoints in one place, saved and loaded by one rank.
#include <pybind11/stl.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bindings.h"
#include "calls.h"
#include "checkpoint/catalog.h"
#include "checkpoint/distributed_checkpoint.h"
#include "checkpoint/in_process_collective.h"
#include "checkpoint/open_storage.h"
#include "seat.h"

namespace baton::python {

using namespace checkpoint;

namespace {

// Part of a tensor in somebody's memory, which `owner` keeps where it is.
struct Slice {
  TensorInfo info;
  std::byte* data = nullptr;
  py::object owner;
};

Slice slice(const std::string& name, const std::string& dtype, const Shape& global_shape, const Shape& offset,
            const Shape& shape, std::uintptr_t address, py::object owner) {
  const auto known = dtype_of(dtype);
  if (!known) throw py::value_error("no dtype is called " + dtype);
  const TensorInfo info{name, *known, global_shape, {offset, shape}};
  value_or_raise(check(info));
  if (address == 0 && slice_bytes(info) > 0) throw py::value_error("\"" + name + "\" lies nowhere");
  // NOLINTNEXTLINE(performance-no-int-to-ptr): numpy and torch tell addresses as numbers
  return {info, reinterpret_cast<std::byte*>(address), std::move(owner)};
}

using Objects = std::map<std::string, std::string>;

ShardData shard_of(const py::list& slices, const Objects& objects) {
  ShardData shard;
  for (const py::handle each : slices) {
    const auto& slice = each.cast<const Slice&>();
    shard.tensors.push_back({slice.info, {slice.data, slice_bytes(slice.info)}});
  }
  shard.objects = objects;
  return shard;
}

struct Store {
  std::shared_ptr<Seat> seat;
  const std::unique_ptr<Storage> storage;
  const AsyncOptions async;
  DistributedCheckpoint checkpoint{*seat->collective, *storage, async};
};

// A call of a store, which lives until the call has ended.
struct Use {
  explicit Use(std::shared_ptr<Store> used) : store(std::move(used)), turn(store->seat) {}
  std::shared_ptr<Store> store;
  Turn turn;
};

// All ranks open theirs, or hear whose could not be opened.
std::shared_ptr<Store> open_store(const std::string& place, std::shared_ptr<Seat> seat, bool create,
                                  std::uint64_t staging_bytes, double deadline) {
  const Duration within = duration_of(deadline);
  auto storage = run(py::none(), [place, turn = Turn(seat), create, within](std::stop_token stop) {
    auto opened = open_storage(place, create ? Opening::made : Opening::existing);
    Status mine;
    if (!opened) mine = std::unexpected(opened.error());
    const Status all = turn.collective().vote({"open checkpoints", within, std::move(stop)}, mine);
    if (opened && !all) opened = std::unexpected(all.error());
    return opened;
  });
  return std::shared_ptr<Store>(
      new Store{std::move(seat), std::move(storage), {.staging_bytes_max = staging_bytes}}, DeleteUnlocked());
}

SaveOptions save_options(const Objects& custom, bool incremental, bool sha256, double deadline) {
  return {.training = {},
          .sharding = {},
          .custom = custom,
          .incremental = incremental,
          .sha256 = sha256,
          .deadline = duration_of(deadline),
          .stop = {}};
}

SaveResult save(std::shared_ptr<Store> store, std::uint64_t step, const py::list& slices,
                const Objects& objects, const Objects& custom, bool incremental, bool sha256,
                double deadline) {
  return run(slices,
             [use = Use(std::move(store)), step, shard = shard_of(slices, objects),
              options = save_options(custom, incremental, sha256, deadline)](std::stop_token stop) mutable {
               options.stop = std::move(stop);
               return use.store->checkpoint.save(step, std::move(shard), options);
             });
}

Ticket save_async(std::shared_ptr<Store> store, std::uint64_t step, const py::list& slices,
                  const Objects& objects, const Objects& custom, bool incremental, bool sha256,
                  double deadline) {
  return run(
      slices, [use = Use(std::move(store)), step, shard = shard_of(slices, objects),
               options = save_options(custom, incremental, sha256, deadline)](std::stop_token stop) mutable {
        options.stop = std::move(stop);  // interrupted, the caller goes on changing what is to be copied
        return use.store->checkpoint.save_async(step, shard, options);
      });
}

// Nothing is saved, and all ranks hear why; so does this one, as an exception.
void refuse(std::shared_ptr<Store> store, std::uint64_t step, const std::string& why, double deadline) {
  const Error error{Errc::invalid_request, why, {}};
  SaveOptions options = save_options({}, false, false, deadline);
  (void)run(py::none(), [use = Use(std::move(store)), step, error, options](std::stop_token stop) mutable {
    options.stop = std::move(stop);
    return use.store->checkpoint.refuse(step, error, options);
  });
}

void refuse_async(std::shared_ptr<Store> store, std::uint64_t step, const std::string& why, double deadline) {
  const Error error{Errc::invalid_request, why, {}};
  const SaveOptions options = save_options({}, false, false, deadline);
  (void)run(py::none(), [use = Use(std::move(store)), step, error, options](const std::stop_token&) {
    const auto ticket = use.store->checkpoint.refuse_async(step, error, options);
    return ticket ? ticket->wait(options.deadline) : Result<SaveResult>(std::unexpected(ticket.error()));
  });
}

void close(std::shared_ptr<Store> store) {
  run(py::none(), [use = Use(std::move(store))](const std::stop_token& stop) {
    const Status closed = use.store->checkpoint.close();
    if (closed || !stop.stop_requested()) return closed;
    // Nobody waits for it any more, and there is no next call.
    std::fprintf(stderr, "baton: a checkpoint was not saved: %s\n", closed.error().message.c_str());
    return Status{};
  });
}

bool let_memory_go(std::shared_ptr<Store> store) {
  const Use use(std::move(store));
  const py::gil_scoped_release unlock;
  return use.store->checkpoint.let_memory_go();
}

// The whole of each tensor, once, however many slices it was written in.
py::list tensors_of(const CheckpointMetadata& metadata) {
  std::map<std::string_view, const TensorInfo*> tensors;
  for (const ShardMetadata& shard : metadata.shards)
    for (const TensorMetadata& tensor : shard.tensors) tensors.emplace(tensor.info.name, &tensor.info);
  py::list list;
  for (const auto& [name, info] : tensors)
    list.append(py::make_tuple(info->name, std::string(word(info->dtype)), py::cast(info->global_shape)));
  return list;
}

// `wanted` is asked, with the interpreter's lock, once it is known which checkpoint it is.
Result<std::vector<TensorTarget>> targets_of(py::handle wanted, const CheckpointMetadata& metadata) {
  const py::gil_scoped_acquire lock;
  try {
    const py::list slices = wanted(tensors_of(metadata), py::cast(metadata.objects));
    std::vector<TensorTarget> targets;
    for (const py::handle each : slices) {
      const auto& slice = each.cast<const Slice&>();
      targets.push_back({slice.info, {slice.data, slice_bytes(slice.info)}});
    }
    return targets;
  } catch (const py::error_already_set& raised) {
    return failure(Errc::invalid_request, py::str(raised.value()));
  }
}

struct Loaded {
  CheckpointMetadata checkpoint;
  LoadReport report;
};

// `wanted` keeps what it returns.
Loaded load(std::shared_ptr<Store> store, const std::string& name, const py::function& wanted, bool strict,
            bool fall_back, double deadline) {
  LoadOptions options{
      .strict = strict, .fall_back = fall_back, .deadline = duration_of(deadline), .stop = {}};
  const py::handle asked = wanted;
  return run(
      wanted,
      [use = Use(std::move(store)), name, asked,
       options](const std::stop_token& stop) mutable -> Result<Loaded> {
        options.stop = stop;
        const Wishes wishes = [&](const CheckpointMetadata& metadata) -> Result<std::vector<TensorTarget>> {
          if (stop.stop_requested()) return failure(Errc::closed, "it was interrupted");
          return targets_of(asked, metadata);
        };
        auto loaded = use.store->checkpoint.load(name, wishes, options);
        if (!loaded) return std::unexpected(loaded.error());
        return Loaded{std::move(loaded->metadata), std::move(loaded->report)};
      });
}

std::vector<CheckpointMetadata> committed(const std::shared_ptr<Store>& store) {
  auto attempts = run(py::none(), [store](const std::stop_token&) { return list_attempts(*store->storage); });
  std::vector<CheckpointMetadata> all;
  for (Attempt& attempt : attempts)
    if (attempt.metadata) all.push_back(*std::move(attempt.metadata));
  return all;
}

// Interrupted, it has told nobody of an error: that comes from the next call.
SaveResult wait(const Ticket& ticket, double at_most) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds(duration_of(at_most).ms);
  wait_with_signals(
      [&](std::chrono::milliseconds slice) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
        return ticket.is_done_within({std::min(slice, left).count()}) || Clock::now() >= until;
      },
      [] {});
  return value_or_raise(ticket.wait({0}));
}

void bind_values(py::module_& module) {
  py::class_<Slice>(module, "Slice").def(py::init(&slice));
  py::class_<SaveResult>(module, "Saved", "What a save came to on this rank.")
      .def_property_readonly("name", [](const SaveResult& it) { return to_text(it.id); })
      .def_readonly("bytes_written", &SaveResult::bytes_written)
      .def_readonly("bytes_reused", &SaveResult::bytes_reused)
      .def("__repr__", [](const SaveResult& it) { return "<saved " + to_text(it.id) + ">"; });
  py::class_<CheckpointMetadata>(module, "Checkpoint", "A checkpoint that was committed.")
      .def_property_readonly("name", [](const CheckpointMetadata& it) { return to_text(it.id); })
      .def_property_readonly("step", [](const CheckpointMetadata& it) { return it.training.step; })
      .def_property_readonly("created_at",
                             [](const CheckpointMetadata& it) { return double(it.created_ms) / 1000; })
      .def_readonly("world_size", &CheckpointMetadata::world_size)
      .def_readonly("custom", &CheckpointMetadata::custom)
      .def_property_readonly("bytes", &CheckpointMetadata::tensor_bytes)
      .def_property_readonly("tensors", &tensors_of)
      .def("__repr__", [](const CheckpointMetadata& it) { return "<checkpoint " + to_text(it.id) + ">"; });
  py::class_<Loaded>(module, "LoadResult")
      .def_readonly("checkpoint", &Loaded::checkpoint)
      .def_property_readonly("missing", [](const Loaded& it) { return it.report.missing; })
      .def_property_readonly("unexpected", [](const Loaded& it) { return it.report.unexpected; })
      .def_property_readonly("mismatched", [](const Loaded& it) { return it.report.mismatched; })
      .def_property_readonly("passed_over", [](const Loaded& it) { return it.report.passed_over; })
      .def_property_readonly("bytes_read", [](const Loaded& it) { return it.report.bytes_read; });
  py::class_<Ticket>(module, "Ticket", "A save in the background.")
      .def_property_readonly(
          "staged", [](const Ticket&) { return true; }, "The state was copied, and may change again.")
      .def_property_readonly("done", &Ticket::is_done, "It is over, one way or the other.")
      .def_property_readonly("committed", &Ticket::is_committed, "It is over, and there is a checkpoint.")
      .def("wait", &wait, py::arg("timeout") = 1e9,
           "Waits until it is over; raises its error. DEADLINE_EXCEEDED: it is still under way.")
      .def("cancel", &Ticket::cancel, "It ends soon, for all ranks, unless it is committed already.");
}

}  // namespace

void bind_store(py::module_& module) {
  bind_values(module);
  py::class_<Store, std::shared_ptr<Store>>(module, "Store")
      .def(py::init(&open_store))
      .def("save", &save)
      .def("save_async", &save_async)
      .def("refuse", &refuse)
      .def("refuse_async", &refuse_async)
      .def("load", &load)
      .def("committed", &committed)
      .def("close", &close)
      .def("let_memory_go", &let_memory_go);
}

}  // namespace baton::python
