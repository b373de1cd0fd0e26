"""Tasks from Python, and calls that neither block other threads nor Ctrl-C."""
# C13, X8
import os
import signal
import tempfile
import threading
import time
import unittest
import unittest.mock

from support import Folder, Server, python

import baton


class Tasks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.address = cls.server.__enter__().address
        cls.addClassCleanup(cls.server.__exit__)

    def setUp(self):
        self.client = baton.Client(self.address)
        self.addCleanup(self.client.close)
        self.queue = self.id().rsplit(".", 1)[-1][:60]

    def test_live_and_are_completed(self):
        submitted = self.client.submit(self.queue, b"\0hello", key=f"{self.queue}-1", priority=3)
        again = self.client.submit(self.queue, b"\0hello", key=f"{self.queue}-1", priority=3)
        self.assertEqual((again.task, submitted.existed, again.existed), (submitted.task, False, True))
        (leased,) = self.client.lease("me", self.queue, ttl=20)
        self.assertEqual((leased.payload, leased.attempt, leased.ttl), (b"\0hello", 1, 20))
        self.assertAlmostEqual(self.client.extend(leased, 40), 40, delta=1)
        self.assertEqual(self.client.complete(leased, "done").outcome, "completed")
        task = self.client.wait(submitted.task, 10)
        self.assertEqual((task.state, task.result, task.ended), ("completed", b"done", True))
        self.assertEqual(self.client.get(f"key:{self.queue}-1").task, submitted.task)

    def test_fail_and_are_tried_again(self):
        task = self.client.submit(self.queue, "x").task
        (leased,) = self.client.lease("me", [self.queue])
        self.assertEqual(self.client.fail(leased, "first", delay=0.01).outcome, "retried")
        (leased,) = self.client.lease("me", self.queue, wait=10)
        self.assertEqual(leased.attempt, 2)
        self.assertEqual(self.client.release(leased).outcome, "released")
        (leased,) = self.client.lease("me", self.queue, wait=10)
        self.assertEqual(self.client.fail(leased, "last", final=True).outcome, "failed")
        self.assertEqual(self.client.get(task).reason, b"last")

    def test_come_many_at_once(self):
        self.client.submit(self.queue, "taken", key=f"{self.queue}-a")
        good, refused = self.client.submit_many(self.queue, ["1", "2"], keys=[f"{self.queue}-b", f"{self.queue}-a"])
        self.assertFalse(good.existed)
        self.assertIsInstance(refused, baton.Error)
        self.assertEqual(refused.code, "CONFLICT")

    def test_go_over_tls_wherever_a_file_for_it_is_named(self):
        """The coordinator here speaks none, so whatever reaches it was sent in the clear."""
        with tempfile.NamedTemporaryFile() as nothing:
            for options, environment in [({}, {"BATON_TLS_CA": nothing.name}), ({"ca": nothing.name}, {}),
                                         ({"key": nothing.name}, {}), ({}, {"BATON_TLS": "1"})]:
                with self.subTest(options, environment=environment), unittest.mock.patch.dict(os.environ, environment):
                    with self.assertRaises(baton.Error):
                        baton.Client(self.address, **options).submit(self.queue, "x", deadline=5)

    def test_repeat_no_key_in_a_message(self):
        key = "-----BEGIN PRIVATE KEY-----\nsecret"
        with self.assertRaises(baton.Error) as refused:
            baton.Client(self.address, certificate=os.__file__, key=key).submit(self.queue, "x", deadline=5)
        self.assertNotIn("secret", str(refused.exception))

    def test_are_refused_with_stable_codes(self):
        for code, call in [("NOT_FOUND", lambda: self.client.get("key:nobody")),
                           ("INVALID_REQUEST", lambda: self.client.submit("", "x")),
                           ("UNAVAILABLE", lambda: baton.Client("127.0.0.1:1").get("1", deadline=0.2))]:
            with self.assertRaises(baton.Error) as refused:
                call()
            self.assertEqual(refused.exception.code, code)
        with self.assertRaisesRegex(TypeError, "prioritty"):
            self.client.submit(self.queue, "x", prioritty=1)
        for content in (5, True, [104, 105]):
            with self.assertRaisesRegex(TypeError, "bytes or a str"):
                self.client.submit(self.queue, content)
        with self.assertRaises(ValueError):
            self.client.lease("me", self.queue, ttl=-1)
        self.client.close()
        with self.assertRaisesRegex(baton.Error, "CLOSED"):
            self.client.get("1")

    def test_are_waited_for_without_the_interpreters_lock(self):
        waiting = threading.Thread(target=self.client.lease, args=("me", self.queue), kwargs={"wait": 60})
        waiting.start()
        self.client.submit(self.queue, "for the thread")  # would never be reached otherwise
        waiting.join(30)
        self.assertFalse(waiting.is_alive())


class Interrupt(Folder):
    def assertTakesLess(self, seconds, took, *arguments):
        """One time out of three: a busy machine may need long for anything."""
        self.assertTrue(any(took(*arguments) < seconds for _ in range(3)), arguments)

    def interrupted(self, code, *arguments):
        """How long Ctrl-C takes to end it, and what it said."""
        child = python(code, *arguments)
        self.assertEqual(child.stdout.readline(), "begun\n")
        time.sleep(0.3)  # so that it is in the call; before it, Ctrl-C would be nothing to speak of
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        said, complaints = child.communicate(timeout=30)
        self.assertIn("KeyboardInterrupt", complaints)
        self.assertEqual(child.returncode, -signal.SIGINT, complaints)
        return time.monotonic() - begin

    def test_ends_calls_within_a_second(self):
        with Server() as server:
            for code in ['print("begun", flush=True); baton.Client(sys.argv[1]).lease("me", "empty", wait=60)',
                         'c = baton.Client(sys.argv[1]); t = c.submit("q", "x").task\n'
                         'print("begun", flush=True); c.wait(t, 60)',
                         'g = baton.Group("i", 0, 2, sys.argv[1]); print("begun", flush=True); g.barrier("x")',
                         'g, other = baton.threads(2); print("begun", flush=True); g.barrier("x")']:
                self.assertTakesLess(1.5, self.interrupted, "import baton, sys\n" + code, server.address)

    def test_ends_saves_within_a_second_and_leaves_nothing(self):
        code = """
import baton, numpy, sys
state = {"w": numpy.ones(10_000_000)}
print("begun", flush=True)
while True: baton.save(sys.argv[1], state)
"""
        self.assertTakesLess(2.5, self.interrupted, code, self.folder)
        baton.load(self.folder) if baton.checkpoints(self.folder) else None

    def test_ends_a_call_of_a_coordinator_that_does_not_answer(self):
        self.assertTakesLess(5, self.interrupted_alone)

    def interrupted_alone(self):
        code = """
import baton, sys
group = baton.Group("gone", 0, 2, sys.argv[1])
print("begun", flush=True)
group.barrier("x")
"""
        with Server() as server:
            child = python(code, server.address)
            self.assertEqual(child.stdout.readline(), "begun\n")
            os.kill(server.process.pid, signal.SIGSTOP)
            begin = time.monotonic()
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=30)
            took = time.monotonic() - begin
            os.kill(server.process.pid, signal.SIGCONT)
        self.assertEqual(child.returncode, -signal.SIGINT)
        return took


if __name__ == "__main__":
    unittest.main()
