"""Ranks: threads and processes that meet, save parts of one state, and load others."""
# C13, C1, C2
import os
import shutil
import signal
import threading
import unittest
import unittest.mock

import numpy
from support import Folder, Server, on_all, python

import baton
from baton._group import _close_each

WHOLE = numpy.arange(60.0).reshape(12, 5)


def rows(group, fill=True):
    """This rank's rows of the whole."""
    begin, end = 12 * group.rank // group.world_size, 12 * (group.rank + 1) // group.world_size
    part = WHOLE[begin:end].copy() if fill else numpy.zeros((end - begin, 5))
    return baton.Shard(part, (12, 5), (begin, 0))


class Threads(Folder):
    def test_meet(self):
        groups = baton.threads(3)
        self.assertEqual([(group.rank, group.world_size) for group in groups], [(0, 3), (1, 3), (2, 3)])
        for meet, heard in [
            (lambda group: group.barrier("here"), [None] * 3),
            (lambda group: group.broadcast("b", {"rank": group.rank}, root=1), [{"rank": 1}] * 3),
            (lambda group: group.all_gather("g", (group.rank, "x")), [[(0, "x"), (1, "x"), (2, "x")]] * 3),
            (lambda group: group.gather("h", bytes([group.rank])), [[b"\0", b"\1", b"\2"], [], []]),
            (lambda group: group.all_reduce("s", 0.1 * group.rank, lambda a, b: a + b), [0.0 + 0.1 + 0.2] * 3),
        ]:
            self.assertEqual(on_all(groups, meet), heard)

    def test_hear_who_is_missing(self):
        groups = baton.threads(3)
        outcomes = on_all(groups, lambda group: group.rank == 1 or group.barrier("here", deadline=0.2))
        self.assertEqual([outcomes[0].code, outcomes[2].code], ["DEADLINE_EXCEEDED"] * 2)
        self.assertIn("rank 1", str(outcomes[0]))

    def test_hear_of_an_operation_by_its_own_name(self):
        groups = baton.threads(2)
        reduce = lambda group, name: group.all_reduce(name, 1, lambda a, b: a + b, deadline=0.2)
        (outcome,) = on_all(groups[:1], lambda group: reduce(group, "loss"))
        self.assertRegex(str(outcome), '^DEADLINE_EXCEEDED: all_reduce "loss": .*missing: rank 1')
        self.assertEqual(str(on_all(groups[1:], lambda group: reduce(group, "loss"))[0]), str(outcome))
        for outcome in on_all(groups, lambda group: reduce(group, "sum") if group.rank else group.all_gather("sum", 1)):
            self.assertRegex(str(outcome), "^CONFLICT: .*all_reduce")
            self.assertRegex(str(outcome), 'all_gather "sum"')

    def test_that_save_or_load_alone_wait_no_longer_than_they_say(self):
        for call in (lambda **how: baton.save(self.folder, {"x": 1}, **how), lambda **how: baton.load(self.folder, **how),
                     lambda **how: baton.save_async(self.folder, {"x": 1}, **how),
                     lambda group, deadline: baton.Checkpoints(self.folder, group, deadline=deadline)):
            (group, _) = baton.threads(2)
            (outcome,) = on_all([group], lambda group: call(group=group, deadline=0.2))
            self.assertRegex(str(outcome), "DEADLINE_EXCEEDED: .*open checkpoints.*rank 1")

    def test_are_refused_times_that_make_no_sense(self):
        (group,) = baton.threads(1)
        for deadline in (-1, float("nan")):
            self.assertRaises(ValueError, group.barrier, "here", deadline)
            self.assertRaises(ValueError, baton.save, self.folder, {"x": 1}, deadline=deadline)
            self.assertRaises((TypeError, ValueError), baton.save, self.folder, {"x": {1}}, deadline=deadline)
        group.barrier("here", 1e300)

    def test_that_interrupt_a_save_do_not_save_what_they_have_later(self):
        mine, other = groups = baton.threads(2)
        weights = numpy.zeros(1000)
        on_all(groups, lambda group: baton.save(self.folder, {"w": weights}, group=group))
        baton.save_async(self.folder, {"w": weights}, step=1, group=mine)  # under way until the other rank comes
        with self.assertRaises(KeyboardInterrupt):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            baton.save_async(self.folder, {"w": weights}, step=2, group=mine)
        weights[:] = 3
        baton.save_async(self.folder, {"w": numpy.zeros(1000)}, step=1, group=other).wait(60)
        with self.assertRaisesRegex(baton.Error, "rank 0"):
            baton.save_async(self.folder, {"w": numpy.zeros(1000)}, step=2, group=other, deadline=30).wait(60)
        self.assertEqual([each.step for each in baton.checkpoints(self.folder)], [0, 1])

    # C9
    def test_that_interrupt_a_wait_hear_of_the_failure_later(self):
        mine, other = groups = baton.threads(2)
        on_all(groups, lambda group: baton.save(self.folder, {"x": 1}, group=group))
        ticket = baton.save_async(self.folder, {"x": 2}, step=1, group=mine)  # under way until the other rank comes

        def interrupt(*_):
            other.close()  # which is the end of the save, while the wait ends too
            raise KeyboardInterrupt

        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, interrupt))
        with self.assertRaises(KeyboardInterrupt):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            ticket.wait()
        with self.assertRaisesRegex(baton.Error, "the save before this one failed: .*rank 1"):
            baton.save_async(self.folder, {"x": 2}, step=2, group=mine)

    # C9
    def test_that_interrupt_a_save_hear_of_the_failure_of_the_one_before(self):
        mine, other = groups = baton.threads(2)
        on_all(groups, lambda group: baton.save(self.folder, {"x": 1}, group=group))
        baton.save_async(self.folder, {"x": 2}, step=1, group=mine)  # under way until the other rank comes
        with self.assertRaises(KeyboardInterrupt):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            baton.save_async(self.folder, {"x": 2}, step=2, group=mine)
        other.close()  # which is the end of the save, and then of the call that was left behind
        code = "WRONG_STATE"
        while code == "WRONG_STATE":
            with self.assertRaises(baton.Error) as refused:
                baton.save_async(self.folder, {"x": 2}, step=3, group=mine)
            code = refused.exception.code
        self.assertRegex(str(refused.exception), "the save before this one failed: .*rank 1")

    # C9
    def test_keep_no_memory_for_places_in_which_nothing_is_under_way(self):
        def resident_bytes():
            with open("/proc/self/statm") as numbers:
                return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        (group,) = baton.threads(1)
        state = {"w": numpy.ones(8_000_000)}
        before = resident_bytes()
        for number in range(10):
            place = f"{self.folder}/{number}"
            baton.save_async(place, state, group=group).wait()
            shutil.rmtree(place)  # there is no need for that much of a disk
        self.assertLess(resident_bytes() - before, 3 * state["w"].nbytes)

    # C9
    def test_leave_though_their_checkpoints_are_open(self):
        mine, other = groups = baton.threads(2)
        opened = on_all(groups, lambda group: baton.Checkpoints(self.folder, group))
        on_all(groups, lambda group: opened[group.rank].save_async({"w": rows(group)}, step=1))
        with other:
            pass
        self.assertEqual([each.step for each in baton.checkpoints(self.folder)], [1])
        with self.assertRaisesRegex(baton.Error, "^UNAVAILABLE: .*rank 1"):
            mine.barrier("here", deadline=10)
        with self.assertRaisesRegex(baton.Error, "^CLOSED"):
            opened[1].save({"x": 1})

    # C9
    def test_leave_though_a_save_in_the_background_failed(self):
        mine, other = groups = baton.threads(2)
        places = [f"{self.folder}/{name}" for name in "ab"]
        opened = [on_all(groups, lambda group: baton.Checkpoints(place, group)) for place in places]
        for place in places:
            open(f"{place}/step-0000000001", "w").close()
        for pair in opened:
            on_all(groups, lambda group: pair[group.rank].save_async({"x": 1}, step=1))
        try:
            other.close()
            self.fail("nobody was told")
        except baton.Error as error:  # and the other one is told as its context
            told = f"{error}\n{error.__context__}"
            for place in places:
                self.assertIn(place, told)
            with self.assertRaisesRegex(baton.Error, "^UNAVAILABLE: .*rank 1"):
                mine.barrier("here", deadline=10)

    def test_hear_what_one_of_them_cannot_bring(self):
        outcomes = on_all(baton.threads(2), lambda group: group.all_gather("g", print if group.rank else 1))
        for outcome in outcomes:
            self.assertRegex(str(outcome), "rank 1.*builtin_function")
        endless = []
        endless.append(endless)
        for outcome in on_all(baton.threads(2), lambda group: group.all_gather("g", endless if group.rank else 1)):
            self.assertRegex(str(outcome), "rank 1.*RecursionError")

    def test_save_parts_and_load_others(self):
        for count, other in [(1, 3), (3, 2), (4, 5)]:
            store = f"{self.folder}/{count}"
            state = lambda group: {"w": rows(group), "replicated": numpy.ones(3), "step": 7}
            saved = on_all(baton.threads(count), lambda group: baton.save(store, state(group), group=group))
            self.assertEqual(len({each.name for each in saved}), 1, saved)
            wanted = lambda group: {"w": rows(group, fill=False), "replicated": numpy.zeros(3), "step": 0}
            loaded = on_all(baton.threads(other), lambda group: baton.load(store, into=wanted(group), group=group))
            parts = [each["w"].array for each in loaded]
            self.assertTrue(numpy.array_equal(numpy.concatenate(parts), WHOLE))
            self.assertEqual({each["step"] for each in loaded}, {7})
            self.assertTrue(numpy.array_equal(baton.load(store)["w"], WHOLE))

    def test_may_have_different_layers(self):
        layer = lambda rank: {"w": numpy.full(2, rank), "depth": rank}
        state = lambda group: {"step": 1, "layers": {str(group.rank): layer(group.rank)}}
        on_all(baton.threads(2), lambda group: baton.save(self.folder, state(group), group=group))
        back = baton.load(self.folder)
        self.assertEqual((back["step"], sorted(back["layers"])), (1, ["0", "1"]))
        self.assertSame(back["layers"]["1"], layer(1))
        room = lambda group: {"step": 0, "layers": {str(group.rank): {"w": numpy.zeros(2, int), "depth": 0}}}
        loaded = on_all(baton.threads(2), lambda group: baton.load(self.folder, into=room(group), group=group))
        self.assertSame(loaded[1], state(baton.threads(2)[1]))

    def test_may_have_different_parts_of_lists_and_tuples(self):
        for kind in (list, tuple):
            store = f"{self.folder}/{kind.__name__}"
            layer = lambda rank: {f"w{rank}": numpy.full(2, rank)}
            state = lambda group: {"layers": kind([layer(group.rank)] + [numpy.ones(3)] * group.rank)}
            on_all(baton.threads(3), lambda group: baton.save(store, state(group), group=group))
            whole = {"layers": kind([{**layer(0), **layer(1), **layer(2)}, numpy.ones(3), numpy.ones(3)])}
            back = baton.load(store)
            self.assertEqual(sorted(back["layers"][0]), ["w0", "w1", "w2"])
            self.assertSame({"layers": kind([dict(sorted(back["layers"][0].items())), *back["layers"][1:]])}, whole)

    def test_may_have_no_tensor_where_others_have_some(self):
        state = lambda group: {"optimizer": {"moments": [numpy.ones(2)] if group.rank else [], "lr": 0.5, str(group.rank): 1},
                               "ema": numpy.ones(1) if group.rank else None}
        on_all(baton.threads(2), lambda group: baton.save(self.folder, state(group), group=group))
        back = baton.load(self.folder)
        self.assertSame(back["optimizer"]["moments"], [numpy.ones(2)])
        self.assertEqual({**back["optimizer"], "moments": 0}, {"moments": 0, "lr": 0.5, "0": 1, "1": 1})
        self.assertSame(back["ema"], numpy.ones(1))
        room = lambda group: {"optimizer": {"moments": [numpy.zeros(2)] if group.rank else [], "lr": 0.0, str(group.rank): 0},
                              "ema": numpy.zeros(1) if group.rank else None}
        loaded = on_all(baton.threads(2), lambda group: baton.load(self.folder, into=room(group), group=group))
        for group, each in zip(baton.threads(2), loaded):
            self.assertSame(each, state(group))

    def test_hear_by_name_of_what_cannot_be_put_together(self):
        for at, parts in enumerate([([numpy.ones(1)], {"0": numpy.ones(1)}), (numpy.ones(1), [numpy.ones(1)]), (1, numpy.ones(1))]):
            state = lambda group: {"deep": {"part": parts[group.rank], "other": numpy.ones(2)}}
            on_all(baton.threads(2), lambda group: baton.save(f"{self.folder}/{at}", state(group), group=group))
            with self.assertRaisesRegex(baton.Error, '^CONFLICT: ranks saved "deep/part" as '):
                baton.load(f"{self.folder}/{at}")

    def test_hear_of_one_whose_state_cannot_be_saved(self):
        state = lambda group: {"w": numpy.zeros(1), "bad": {1} if group.rank == 1 else None}
        for save in (baton.save, lambda *a, **b: baton.save_async(*a, **b).wait()):
            outcomes = on_all(baton.threads(2), lambda group: save(self.folder, state(group), group=group))
            self.assertIsInstance(outcomes[1], TypeError)
            self.assertRegex(str(outcomes[0]), 'rank 1: "bad" is of type set')
        self.assertEqual(baton.checkpoints(self.folder), [])

    def test_hear_of_one_whose_state_cannot_be_taken(self):
        endless = {"w": numpy.zeros(1)}
        endless["me"] = endless
        no_text = "\udcff"
        for state, custom, said in [
            ({"w": WHOLE.T}, None, "rank 1: RuntimeError: no memory on the device"),  # which has to be copied
            (endless, None, "rank 1: RecursionError: "),
            ({no_text: numpy.zeros(1)}, None, "rank 1: the key "),
            ({no_text: 1}, None, "rank 1: the key "),
            ({"x": 1}, {no_text: "x"}, "rank 1: UnicodeEncodeError: "),
            ({"x": 1}, {"run": 17}, "rank 1: custom is a dict of texts, and 17 is none"),
        ]:
            for save in (baton.save, lambda *a, **b: baton.save_async(*a, **b).wait()):
                def act(group):
                    mine = (state, custom) if group.rank == 1 else ({"x": 1}, None)
                    return save(self.folder, mine[0], custom=mine[1], group=group)

                with unittest.mock.patch("baton._tensors._copy", side_effect=RuntimeError("no memory on the device")):
                    outcomes = on_all(baton.threads(2), act)
                self.assertIsInstance(outcomes[0], baton.Error)
                self.assertIn(said, str(outcomes[0]))
                self.assertNotIsInstance(outcomes[1], baton.Saved)
        self.assertEqual(baton.checkpoints(self.folder), [])

    def test_hear_at_once_of_one_whose_step_is_none(self):
        step = lambda group: "5" if group.rank else 5
        save = lambda group: baton.save(self.folder, {"x": 1}, step=step(group), group=group, deadline=60)
        outcomes = on_all(baton.threads(2), save)
        self.assertIsInstance(outcomes[1], TypeError)
        self.assertRegex(str(outcomes[0]), "rank 1")
        self.assertNotIn("DEADLINE", str(outcomes[0]))

    def test_save_to_two_places_in_the_background(self):
        places = [f"{self.folder}/{name}" for name in "ab"]

        def train(group):
            state = {"w": rows(group)}
            tickets = [baton.save_async(place, state, step=step, group=group) for step in range(3) for place in places]
            return [ticket.wait().name for ticket in tickets]

        first, second = on_all(baton.threads(2), train)
        self.assertEqual(first, second)
        for place in places:
            self.assertTrue(numpy.array_equal(baton.load(place)["w"], WHOLE))

    def test_hear_of_one_whose_storage_cannot_be_opened(self):
        places = [f"{self.folder}/store", f"{self.folder}/file"]
        open(places[1], "w").close()
        outcomes = on_all(baton.threads(2), lambda group: baton.save(places[group.rank], {"x": 1}, group=group))
        for outcome in outcomes:
            self.assertIsInstance(outcome, baton.Error)
            self.assertIn(places[1], str(outcome))

    def test_that_are_no_ranks_take_turns(self):
        state = {"w": numpy.ones(100_000)}
        outcomes = on_all([1, 2, 3, 4], lambda step: baton.save(self.folder, state, step=step).name.split("/")[0])
        self.assertEqual(outcomes, [f"step-{step:010}" for step in (1, 2, 3, 4)])

    def test_hear_by_name_what_they_do_not_agree_on(self):
        outcomes = on_all(baton.threads(2), lambda group: baton.save(self.folder, {"lr": group.rank}, group=group))
        for outcome in outcomes:
            self.assertEqual(outcome.code, "CONFLICT")
            self.assertIn('"lr"', str(outcome))

    def test_use_a_group_one_at_a_time(self):
        (group, other) = baton.threads(2)

        def come(group):
            try:
                group.barrier("here", deadline=60)
                return "it had its turn"
            except baton.Error as error:
                other.barrier("here", deadline=60)  # for which the first one waits
                return error.code

        self.assertEqual(set(on_all([group] * 2, come)), {"it had its turn", "WRONG_STATE"})

    def test_save_in_the_background_beside_their_own_barriers(self):
        groups = baton.threads(2)

        def train(group):
            tickets = []
            for step in range(3):
                tickets.append(baton.save_async(self.folder, {"w": rows(group), "step": step}, step=step, group=group))
                group.barrier(f"step {step}")
            return [ticket.wait().name for ticket in tickets]

        first, second = on_all(groups, train)
        self.assertEqual(first, second)
        self.assertEqual(baton.load(self.folder)["step"], 2)


class Closing(unittest.TestCase):
    # C9
    def test_goes_on_after_an_error_however_many_places_there_are(self):
        closed = []

        class Place:
            def __init__(self, number):
                self.number = number

            def close(self):
                closed.append(self.number)
                if self.number in (7, 900):
                    raise baton.Error("NO_SPACE", f"place {self.number}")

        with self.assertRaises(baton.Error) as raised:
            try:
                raise ValueError("in the block")
            finally:
                _close_each(map(Place, range(1100)))
        self.assertEqual(closed, list(range(1100)))
        told, error = [], raised.exception
        while error is not None:
            told.append(str(error))
            error = error.__context__
        self.assertEqual(told, ["NO_SPACE: place 900", "NO_SPACE: place 7", "in the block"])


class TheEnvironment(unittest.TestCase):
    def test_says_which_rank_this_is_or_what_to_set(self):
        settings = {"BATON_GROUP": "job", "RANK": "0", "WORLD_SIZE": "2"}
        for name, value in [("BATON_GROUP", ""), ("RANK", ""), ("RANK", "first"), ("WORLD_SIZE", ""), ("WORLD_SIZE", "-1")]:
            with unittest.mock.patch.dict(os.environ, {**settings, name: value}):
                with self.assertRaisesRegex(baton.Error, f"INVALID_REQUEST: {name} is .*; set it to"):
                    baton.Group.from_environment()
                del os.environ[name]
                with self.assertRaisesRegex(baton.Error, f"INVALID_REQUEST: {name} is not set"):
                    baton.Group.from_environment()


RANK = """
import sys, time, baton, numpy
address, rank = sys.argv[1], int(sys.argv[2])
group = baton.Group("job", rank, 2, address)
group.barrier("all here", deadline=30)
print("ready", flush=True)
try:
    group.barrier("next", deadline=30) if rank == 0 else time.sleep(60)
except baton.Error as error:
    print(error, flush=True)
"""


class Processes(Folder):
    def test_hear_of_one_that_is_killed(self):
        with Server() as server:
            ranks = [python(RANK, server.address, rank) for rank in range(2)]
            for rank in ranks:
                self.assertEqual(rank.stdout.readline(), "ready\n", rank)
            ranks[1].kill()
            said, _ = ranks[0].communicate(timeout=30)
            ranks[1].communicate()
        self.assertRegex(said, f"UNAVAILABLE: .*rank 1.*pid {ranks[1].pid}")

    def test_that_end_with_a_save_under_way_finish_it(self):
        code = """
import sys, baton, numpy
baton.save_async(sys.argv[1], {"w": numpy.ones(2_000_000)}, step=4)
"""
        ended = python(code, self.folder)
        _, complaints = ended.communicate(timeout=60)
        self.assertEqual((ended.returncode, complaints), (0, ""))
        self.assertEqual(baton.load(self.folder, 4)["w"].min(), 1)

    def test_that_are_forked_leave_what_is_open_to_their_parent(self):
        code = """
import os, signal, sys, baton, numpy
path, state = sys.argv[1], {"w": numpy.ones(2_000_000)}
(group,) = baton.threads(1)
client = baton.Client("127.0.0.1:1")
baton.save(path + "/alone", {"step": 3})
place = baton.Checkpoints(path, group)
ticket = place.save_async(state, step=4)
child = os.fork()
if child == 0:
    signal.alarm(60)
    for call in (lambda: place.save(state), lambda: group.barrier("ready"), lambda: client.get("a-1"), place.close):
        try:
            call()
        except baton.Error as error:
            print(error.code)
    print(baton.load(path + "/alone"), flush=True)
    baton.save(path + "/alone", {"step": 5}, step=5)
    del ticket, place, group, client
    sys.exit()
print(os.waitpid(child, 0)[1])
place.close()
"""
        forking = python(code, self.folder)
        said, complaints = forking.communicate(timeout=120)
        self.assertEqual((said, complaints), ("CLOSED\nCLOSED\nCLOSED\n{'step': 3}\n0\n", ""))
        self.assertEqual(baton.load(self.folder, 4)["w"].min(), 1)
        self.assertEqual(baton.load(self.folder + "/alone"), {"step": 5})

    # C9
    def test_that_interrupt_a_close_say_what_failed(self):
        code = """
import os, signal, sys, threading, baton
mine, other = baton.threads(2)
opening = threading.Thread(target=baton.save, args=(sys.argv[1], {"x": 1}), kwargs={"group": other})
opening.start()
baton.save(sys.argv[1], {"x": 1}, group=mine)
opening.join()
baton.save_async(sys.argv[1], {"x": 2}, step=1, group=mine)  # under way until the other rank comes

def interrupt(*_):
    other.close()  # which is the end of the save, while the close ends too
    raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupt)
try:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    mine.close()
except KeyboardInterrupt:
    print("interrupted")
"""
        ended = python(code, self.folder)
        said, complaints = ended.communicate(timeout=60)
        self.assertEqual((ended.returncode, said), (0, "interrupted\n"), complaints)
        self.assertRegex(complaints, "\\Abaton: .*rank 1.*\n\\Z")

    def test_that_end_with_a_failed_save_say_so(self):
        code = """
import os, sys, baton, numpy
baton.save(sys.argv[1], {"w": numpy.ones(2)}, step=1)
open(sys.argv[1] + "/step-0000000002", "w").close()
keep = baton.save_async(sys.argv[1], {"w": numpy.ones(2)}, step=2)
"""
        ended = python(code, self.folder)
        _, complaints = ended.communicate(timeout=60)
        self.assertEqual(ended.returncode, 0)
        self.assertIn("baton: at exit:", complaints)
        self.assertIn("step-0000000002", complaints)


if __name__ == "__main__":
    unittest.main()
