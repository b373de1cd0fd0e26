"""States of numpy arrays and plain values: what goes in comes out, and what cannot is refused by name."""
# C13
import collections
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
from pathlib import Path

import numpy
from support import BATON, Folder, on_all

import baton


class States(Folder):
    def back(self, state):
        baton.save(self.folder, state)
        return baton.load(self.folder)

    def test_come_back_with_their_nesting_and_types(self):
        state = {
            "model": collections.OrderedDict([("b", numpy.arange(3.0)), ("a", numpy.ones((2, 2), numpy.float16))]),
            "optimizer": {"state": {0: {"step": numpy.array(7)}, 1: {}}, "groups": [{"lr": 0.1, "betas": (0.9, 0.999)}]},
            "mixed": [1, (numpy.zeros(2), "x", None), {"y": True}],
            "empty": {}, "none": None, "text": "naïve\n\0", "yes": True,
        }
        self.assertSame(state, self.back(state))

    def test_numbers_come_back_exactly(self):
        values = [0.1, -0.0, 1e-320, 1.7976931348623157e308, 2.0**-1074, float("inf"), float("-inf"), float("nan"),
                  0, -1, 2**53, 2**53 + 1, -(2**200), True, False]
        self.assertSame({"values": values}, self.back({"values": values}))

    def test_every_dtype_comes_back(self):
        types = "bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
        state = {name: numpy.arange(5).astype(name) for name in types}
        self.assertSame(state, self.back(state))

    def test_arrays_of_every_layout_come_back(self):
        base = numpy.arange(24.0).reshape(2, 3, 4)
        state = {
            "transposed": base.T, "strided": base[:, ::2, 1::2], "backwards": base[::-1],
            "broadcast": numpy.broadcast_to(1, (3, 2)),
            "fortran": numpy.asfortranarray(base), "big_endian": numpy.arange(4, dtype=">i4"),
            "scalar": numpy.float64(0.1), "zero_dimensions": numpy.array(3, numpy.int8),
            "no_elements": numpy.empty((3, 0, 2)),
            "nan": numpy.array([0x7FC00001, 0xFF800001], numpy.uint32).view(numpy.float32),
        }
        self.assertSame(state, self.back(state))

    def test_arrays_that_are_one_stay_one(self):
        array = numpy.arange(3.0)
        back = self.back({"embedding": array, "head": {"tied": array}})
        self.assertIs(back["embedding"], back["head"]["tied"])
        names = [name for name, _, _ in baton.checkpoints(self.folder)[0].tensors]
        self.assertEqual(names, ["embedding"])

    def test_come_back_however_deep_they_reasonably_are(self):
        state, plain = {"w": numpy.ones(2)}, {"x": 1}
        for _ in range(100):
            state, plain = {"in": state}, {"in": plain}
        self.assertSame({**state, "plain": plain}, self.back({**state, "plain": plain}))
        with self.assertRaisesRegex(baton.Error, "INVALID_REQUEST: .*has more than 320"):
            for _ in range(20):
                state = {"in": state}
            baton.save(self.folder, state)

    def test_keys_that_look_like_paths_do_not_mix(self):
        state = {"a/b": numpy.zeros(1), "a": {"b": numpy.ones(1)}, "a~1b": numpy.full(1, 2.0)}
        self.assertSame(state, self.back(state))

    def test_what_would_need_pickle_is_refused_by_name_and_type(self):
        class Tuple(tuple):
            pass

        for value, kind in [(print, "builtin_function"), ({1, 2}, "set"), (b"x", "bytes"), (Tuple(), "Tuple"),
                            (numpy.array([None]), "object"), (numpy.zeros(1, complex), "complex"),
                            (numpy.ma.masked_array([1]), "MaskedArray"), ({(1, 2): 0}, "tuple"), ("\ud800", "surrogate")]:
            with self.assertRaises(TypeError) as refused:
                baton.save(self.folder, {"fine": numpy.zeros(1), "outer": {"inner": [value]}})
            self.assertIn("outer/inner/0", str(refused.exception))
            self.assertIn(kind, str(refused.exception))
        with self.assertRaises(TypeError):
            baton.save(self.folder, numpy.zeros(1))
        for state in ({0: numpy.zeros(1), "0": numpy.ones(1)}, {0: [5], "0": {"w": numpy.ones(1)}},
                      {"0": {"w": numpy.ones(1)}, 0: [5]}):
            with self.assertRaisesRegex(TypeError, "the same name"):
                baton.save(self.folder, state)
        for state, said in [({2.5: 1}, "the key 2.5 is a float; a key is a str or an int"),
                            ({"\ud800": numpy.zeros(1)}, r"the key '\ud800' has a lone surrogate, which is no text"),
                            ({"a": {"b": {None: 1}}}, 'the key None of "a/b" is a NoneType; a key is a str or an int')]:
            with self.assertRaises(TypeError) as refused:
                baton.save(self.folder, state)
            self.assertEqual(str(refused.exception), said)
        self.assertEqual(baton.checkpoints(self.folder), [])

    def test_any_reader_of_the_format_opens_the_files(self):
        baton.save(self.folder, {"weights": numpy.arange(6, dtype=numpy.int16).reshape(2, 3)})
        (shard,) = Path(self.folder).rglob("*.safetensors")
        content = shard.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        entry = json.loads(content[8 : 8 + length])["weights"]
        begin, end = entry["data_offsets"]
        self.assertEqual((entry["dtype"], entry["shape"]), ("I16", [2, 3]))
        self.assertEqual(content[8 + length + begin : 8 + length + end], numpy.arange(6, dtype=numpy.int16).tobytes())


class Told:
    """What torch tells of a tensor at an address, for tests that do without torch."""

    layout, dtype, shape = "strided", "torch.float32", (2, 3)

    def __init__(self, device, address):
        self.device, self.data_ptr = Device(device), lambda: address

    def to_local(self):
        return Told("cpu", 4096)

    numel, element_size, storage_offset = (lambda _: 6), (lambda _: 4), (lambda _: 0)
    is_contiguous, is_neg, stride = (lambda _: True), (lambda _: False), (lambda _: (3, 1))


class Device(str):
    type = property(lambda self: self.partition(":")[0])


@unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(Tensor=Told, strided="strided"))
class Tensors(Folder):
    def test_without_memory_of_their_own_are_refused_by_name(self):
        for device in ("cpu", "cuda:0"):
            elsewhere = Told(device, 0)
            for call in (baton.save, baton.save_async):
                with self.assertRaises(TypeError) as refused:
                    call(self.folder, {"net": {"w": elsewhere}})
                self.assertEqual(str(refused.exception), '"net/w" is a Told without memory of its own; save its local part as '
                                                         "`Shard(x.to_local(), x.shape, offsets)`")
        baton.save(self.folder, {"w": numpy.zeros((2, 3), numpy.float32)})
        with self.assertRaisesRegex(TypeError, '"w" is a Told without memory of its own'):
            baton.load(self.folder, into={"w": Told("cpu", 0)})
        with self.assertRaisesRegex(ValueError, '"w" lies nowhere'):
            baton._baton.Slice("w", "F32", (2,), (0,), (2,), 0, None)

    def test_are_tied_by_where_they_lie(self):
        at = {"a": ("cuda:0", 4096), "tied": ("cuda:0", 4096), "b": ("cuda:1", 4096), "c": ("cpu", 4096), "d": ("cpu", 0),
              "e": ("cpu", 0)}
        flat = baton._state.flatten({name: Told(*place) for name, place in at.items()})
        self.assertEqual(list(flat.tensors), ["a", "b", "c", "d", "e"])


class Into(Folder):
    def test_arrays_are_filled_where_they_are(self):
        saved = {"w": numpy.arange(6.0).reshape(2, 3), "deep": [numpy.ones(2), 1], "pair": (2, numpy.int64(3)), "lr": 0.1}
        baton.save(self.folder, saved)
        wide = numpy.zeros((2, 6))
        state = {"w": wide[:, ::2], "deep": [numpy.zeros(2), 0], "pair": (0, numpy.int64(0)), "lr": 0.0}
        deep = state["deep"][0]
        self.assertIs(baton.load(self.folder, into=state), state)
        self.assertEqual(wide.tolist(), [[0, 0, 1, 0, 2, 0], [3, 0, 4, 0, 5, 0]])
        self.assertIs(state["deep"][0], deep)
        self.assertEqual(deep.tolist(), [1, 1])
        self.assertEqual((state["deep"][1], state["pair"], state["lr"]), (1, (2, 3), 0.1))
        self.assertIs(type(state["pair"][1]), numpy.int64)

    def test_what_does_not_fit_is_an_error_and_names_it(self):
        baton.save(self.folder, {"w": numpy.zeros(3), "lr": 0.1})
        for state, said in [({"w": numpy.zeros(4), "lr": 0.0}, r"w.*\[3\].*\[4\]"),
                            ({"w": numpy.zeros(3, numpy.float32), "lr": 0.0}, "F64"),
                            ({"w": numpy.zeros(3), "lr": 0.0, "v": numpy.zeros(1)}, "missing: v"),
                            ({"lr": 0.0}, "not wanted: w; change what it is loaded into, or do without strict$"),
                            ({"w": numpy.zeros(3)}, "not wanted: lr; change what it is loaded into, or do without strict$"),
                            ({"w": numpy.zeros(3), "lr": 0.0, "b": 1}, "missing: b"),
                            ({"w": numpy.zeros(3), "lr": 0.0, **{c: 1 for c in "abcdefg"}}, "missing: a, b, c, d, e and 2 more;")]:
            with self.assertRaisesRegex(baton.Error, said) as refused:
                baton.load(self.folder, into=state)
            self.assertEqual(refused.exception.code, "CONFLICT")
        fixed = numpy.zeros(3)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(TypeError, '"w".*read-only'):
            baton.load(self.folder, into={"w": fixed, "lr": 0.0})

    def test_what_does_not_fit_can_be_a_report_instead(self):
        baton.save(self.folder, {"w": numpy.ones(3), "old": numpy.zeros(1), "epoch": 3})
        state = {"w": numpy.zeros(3), "new": numpy.zeros(1), "lr": 0.5}
        loaded = baton.Checkpoints(self.folder).load(into=state, strict=False)
        self.assertEqual(state["w"].tolist(), [1, 1, 1])
        self.assertEqual((loaded.missing, loaded.unexpected, state["lr"]), (["new", "lr"], ["old", "epoch"], 0.5))

    def test_scalars_that_are_not_there_stay_as_they_are(self):
        baton.save(self.folder, {"w": numpy.ones(3)})
        state = {"w": numpy.zeros(3), "lr": numpy.float64(0.125), "count": numpy.int32(7)}
        loaded = baton.Checkpoints(self.folder).load(into=state, strict=False)
        self.assertSame(loaded.state, {"w": numpy.ones(3), "lr": numpy.float64(0.125), "count": numpy.int32(7)})

    def test_tied_arrays_are_both_filled(self):
        array = numpy.arange(3.0)
        baton.save(self.folder, {"a": array, "b": array})
        state = baton.load(self.folder, into={"a": numpy.zeros(3), "b": numpy.zeros(3)})
        self.assertEqual(state["b"].tolist(), [0, 1, 2])


class Checkpoints(Folder):
    def test_are_found_by_step_and_newest_first(self):
        for step in (10, 2, 30):
            baton.save(self.folder, {"step": step}, step=step, custom={"why": "test"})
        self.assertEqual(baton.load(self.folder)["step"], 30)
        self.assertEqual(baton.load(self.folder, 10)["step"], 10)
        self.assertEqual(baton.load(self.folder, "step-0000000002")["step"], 2)
        self.assertEqual([each.step for each in baton.checkpoints(self.folder)], [2, 10, 30])
        self.assertEqual(baton.checkpoints(self.folder)[0].custom, {"why": "test"})

    def test_errors_have_stable_codes(self):
        missing = os.path.join(self.folder, "missing")
        with self.assertRaises(baton.Error) as refused:
            baton.load(missing)
        self.assertEqual(refused.exception.code, "NOT_FOUND")
        self.assertFalse(os.path.exists(missing))
        baton.save(self.folder, {"x": 1})
        with self.assertRaises(baton.Error) as refused:
            baton.load(self.folder, 5)
        self.assertEqual(str(refused.exception), f'NOT_FOUND: there is no committed checkpoint "5" in {self.folder}; '
                                                 "the newest is step-0000000000")
        empty = tempfile.mkdtemp(dir=self.folder)
        with self.assertRaises(baton.Error) as refused:
            baton.load(empty)
        self.assertEqual(str(refused.exception), f"NOT_FOUND: there is no committed checkpoint in {empty}")

    def test_are_asked_for_by_name_or_step(self):
        baton.save(self.folder, {"x": 1}, step=7, custom={"by": "me"})
        for name in ("latest", "step-0000000007", 7, numpy.int64(7)):
            self.assertEqual(baton.load(self.folder, name), {"x": 1})
        for name in (None, 7.0, [7], b"latest"):
            with self.assertRaisesRegex(TypeError, "^a checkpoint is named by a str, or by its step, an int, not "):
                baton.load(self.folder, name)
        for custom in ("by", 7, [("by", "me")]):
            with self.assertRaisesRegex(TypeError, "^custom is a dict of texts, not "):
                baton.save(self.folder, {"x": 1}, step=8, custom=custom)

    def test_are_refused_numbers_and_groups_that_make_no_sense(self):
        for step, kind in [(-1, ValueError), (2**63, ValueError), ("5", TypeError), (1.5, TypeError), (None, TypeError)]:
            for save in (baton.save, baton.save_async):
                with self.assertRaisesRegex(kind, f"a step is an int.*, not '?{step}'?$"):
                    save(self.folder, {"x": 1}, step=step)
        for call, said in [(lambda: baton.Shard(numpy.zeros(3), (3,), (-1,)), "each of offsets is an int from 0 to .*, not -1$"),
                           (lambda: baton.Shard(numpy.zeros(3), (-3,), (0,)), "each of global_shape is an int from 0 .*, not -3$"),
                           (lambda: baton.Group("run", -1, 3), "a rank is an int from 0 to .*, not -1$"),
                           (lambda: baton.Group("run", 0, 2**32), "a world size is an int from 0 to .*, not 4294967296$"),
                           (lambda: baton.threads(-1), "a world size is an int from 0 to .*, not -1$")]:
            self.assertRaisesRegex(ValueError, f"^{said}", call)
        for call in (lambda: baton.save(self.folder, {"x": 1}, group="run"), lambda: baton.load(self.folder, group="run"),
                     lambda: baton.save_async(self.folder, {"x": 1}, group="run"), lambda: baton.Checkpoints(self.folder, "run")):
            self.assertRaisesRegex(TypeError, "^a group is a baton.Group, not 'run'$", call)
        (group,) = baton.threads(1)
        for call in (lambda: baton.save(self.folder, {"x": 1}, deadline="x"), lambda: group.barrier("b", "x"),
                     lambda: baton.save_async(self.folder, {"x": 1}, deadline="x"),
                     lambda: baton.load(self.folder, deadline="x")):
            with self.assertRaisesRegex(TypeError, "^a deadline is a number of seconds, not 'x'$"):
                call()
        self.assertEqual(baton.checkpoints(self.folder), [])
        baton.save(self.folder, {"x": 1}, step=numpy.int64(3), deadline=numpy.float32(9))
        baton.save(self.folder, {"x": 2}, step=2**63 - 1)
        self.assertEqual([each.step for each in baton.checkpoints(self.folder)], [3, 2**63 - 1])

    def test_damage_is_noticed_and_walked_around(self):
        baton.save(self.folder, {"w": numpy.zeros(1000)}, step=1)
        newest = baton.save(self.folder, {"w": numpy.ones(1000)}, step=2)
        (shard,) = Path(self.folder, newest.name).glob("*.safetensors")
        content = bytearray(shard.read_bytes())
        content[5000] ^= 1
        shard.write_bytes(content)
        with self.assertRaisesRegex(baton.Error, '"w"') as refused:
            baton.load(self.folder)
        self.assertEqual(refused.exception.code, "CORRUPT")
        with baton.Checkpoints(self.folder) as checkpoints:
            loaded = checkpoints.load(fall_back=True)
        self.assertEqual((loaded.step, loaded.state["w"].sum(), len(loaded.passed_over)), (1, 0, 1))

    def test_what_did_not_change_is_not_written_again(self):
        state = {"frozen": numpy.arange(100_000.0), "trained": numpy.zeros(10)}
        baton.save(self.folder, state, step=1)
        state["trained"] += 1
        saved = baton.save(self.folder, state, step=2, incremental=True)
        self.assertEqual(saved.bytes_reused, 800_000)
        self.assertLess(saved.bytes_written, 10_000)
        self.assertSame(state, baton.load(self.folder))

    # E9
    def test_are_told_apart_by_plain_values_too(self):
        def command(*words):
            ran = subprocess.run([BATON, "checkpoint", *words], capture_output=True, text=True, timeout=60)
            return ran.returncode, ran.stdout

        for step, state in [(1, {"lr": 0.1, "depth": 3}), (2, {"lr": 0.2, "depth": 3}), (3, {"lr": 0.1, "seed": 7})]:
            baton.save(self.folder, {"w": numpy.zeros(3), **state}, step=step)
        self.assertEqual(command("diff", self.folder, "1", "1")[0], 0)
        code, said = command("diff", self.folder, "1", "2")
        self.assertEqual(code, 1)
        self.assertRegex(said, "^~ lr\n2 the same, 1 changed, ")
        code, said = command("diff", self.folder, "1", "3", "--json")
        said = json.loads(said)
        self.assertEqual((code, said["only_in_first"], said["only_in_second"], said["same"]), (1, ["depth"], ["seed"], 2))
        _, said = command("export", self.folder, "1", f"{self.folder}/1.safetensors")
        self.assertIn("left out 2 plain values", said)

    # E9
    def test_have_a_sha256_of_each_slice_if_asked_to(self):
        weights = numpy.arange(10.0)
        baton.save(self.folder, {"w": weights}, step=1, sha256=True)
        baton.save_async(self.folder, {"w": weights}, step=2, sha256=True).wait()
        for manifest in Path(self.folder).glob("*/*.manifest"):
            said = json.loads(manifest.read_text())["shards"][0]["tensors"][0]["sha256"]
            self.assertEqual(said, hashlib.sha256(weights.tobytes()).hexdigest())
        self.assertSame(baton.load(self.folder), {"w": weights})

    def test_of_other_programs_are_dicts_of_names(self):
        from support import BATON
        import subprocess

        content = numpy.arange(4, dtype=numpy.float32)
        header = json.dumps({"layer.weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
        file = Path(self.folder, "model.safetensors")
        file.write_bytes(struct.pack("<Q", len(header)) + header + content.tobytes())
        store = os.path.join(self.folder, "store")
        subprocess.run([BATON, "checkpoint", "import", store, file, "--step", "1"], check=True, capture_output=True)
        self.assertSame(baton.load(store), {"layer.weight": content.reshape(2, 2)})


class Async(Folder):
    def test_the_state_may_change_as_soon_as_it_is_staged(self):
        array = numpy.zeros(1_000_000)
        ticket = baton.save_async(self.folder, {"w": array}, step=1)
        array += 1
        self.assertTrue(ticket.staged)
        self.assertRegex(ticket.wait().name, "step-0000000001/")
        self.assertTrue(ticket.done and ticket.committed)
        self.assertEqual(baton.load(self.folder)["w"].max(), 0)

    def test_a_failure_is_told_by_the_ticket_or_by_the_next_call(self):
        store = os.path.join(self.folder, "store")
        with baton.Checkpoints(store) as checkpoints:
            checkpoints.save({"w": numpy.zeros(1)}, step=1)
            blocked = Path(store, "step-0000000002")
            blocked.write_text("a file where a directory should be")
            ticket = checkpoints.save_async({"w": numpy.zeros(1)}, step=2)
            with self.assertRaises(baton.Error):
                ticket.wait()
            self.assertTrue(ticket.done and not ticket.committed)
            checkpoints.save_async({"w": numpy.zeros(1)}, step=2)
            with self.assertRaisesRegex(baton.Error, "the save before this one failed"):
                checkpoints.save_async({"w": numpy.zeros(1)}, step=3)
            checkpoints.save_async({"w": numpy.zeros(1)}, step=3).wait()

    # C9
    def test_a_failure_outlasts_a_state_that_cannot_be_saved(self):
        store = os.path.join(self.folder, "store")
        with baton.Checkpoints(store) as checkpoints:
            Path(store, "step-0000000002").write_text("a file where a directory should be")
            checkpoints.save_async({"w": numpy.zeros(1)}, step=2)
            with self.assertRaisesRegex(TypeError, '"x" is of type set'):
                checkpoints.save_async({"x": {1}}, step=3)
            with self.assertRaisesRegex(baton.Error, "the save before this one failed: .*step-0000000002"):
                checkpoints.save_async({"w": numpy.zeros(1)}, step=3)
            checkpoints.save_async({"w": numpy.zeros(1)}, step=3).wait()

    # C9
    def test_places_that_nothing_is_under_way_in_keep_no_memory(self):
        places = [os.path.join(self.folder, name) for name in "abc"]
        for place in places:
            baton.save_async(place, {"w": numpy.zeros(1000)}, step=1).wait()
        self.assertEqual([name for name in baton._alone if name in places], places[-1:])
        Path(places[2], "step-0000000002").write_text("a file where a directory should be")
        baton.save_async(places[2], {"w": numpy.zeros(1)}, step=2)
        baton.save(places[0], {"w": numpy.ones(1)}, step=2)
        with self.assertRaisesRegex(baton.Error, "the save before this one failed"):
            baton.save_async(places[2], {"w": numpy.zeros(1)}, step=3)
        baton.save(places[2], {"w": numpy.zeros(1)}, step=3)  # the failure has been heard of, and nothing is under way
        baton.save(places[1], {"w": numpy.zeros(1)}, step=2)
        self.assertEqual([name for name in baton._alone if name in places], places[1:2])
        self.assertEqual([baton.load(place)["w"].sum() for place in places], [1, 0, 0])

    # C9
    def test_a_state_may_be_as_large_as_one_says(self):
        state = {"w": numpy.zeros(100)}
        with baton.Checkpoints(self.folder, staging_bytes=799) as checkpoints:
            with self.assertRaisesRegex(baton.Error, "TOO_LARGE: .* 800 bytes.* 799 .*staging_bytes="):
                checkpoints.save_async(state, step=1).wait()
        with baton.Checkpoints(self.folder, staging_bytes=800) as checkpoints:
            checkpoints.save_async(state, step=1).wait()
        for value, kind in ((-1, ValueError), (1.5, TypeError)):
            self.assertRaisesRegex(kind, "^staging_bytes is an int", baton.Checkpoints, self.folder, staging_bytes=value)

    def test_a_wait_ends_in_time(self):
        mine, other = groups = baton.threads(2)
        on_all(groups, lambda group: baton.save(self.folder, {"x": 0}, group=group))
        ticket = baton.save_async(self.folder, {"x": 1}, step=1, group=mine)  # under way until the other rank comes
        for timeout in (0, 0.01):
            with self.assertRaisesRegex(baton.Error, "^DEADLINE_EXCEEDED: "):
                ticket.wait(timeout)
        self.assertFalse(ticket.done)
        baton.save_async(self.folder, {"x": 1}, step=1, group=other).wait()
        self.assertRegex(ticket.wait().name, "step-0000000001/")

    def test_one_that_is_cancelled_leaves_nothing(self):
        mine, other = groups = baton.threads(2)
        on_all(groups, lambda group: baton.save(self.folder, {"x": 0}, group=group))
        ticket = baton.save_async(self.folder, {"x": 1}, step=1, group=mine)
        ticket.cancel()
        for each in (ticket, baton.save_async(self.folder, {"x": 1}, step=1, group=other)):
            with self.assertRaisesRegex(baton.Error, "^CLOSED: .*rank 0.* was stopped"):
                each.wait()
            self.assertTrue(each.done and not each.committed)
        self.assertEqual([each.step for each in baton.checkpoints(self.folder)], [0])


if __name__ == "__main__":
    unittest.main()
