"""The example of a training loop: a rank is killed, and another number of ranks ends with the very same weights."""
# C13, C2, C8
import os
import re
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from support import Folder, Server

import baton

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "training.py"


class Training(Folder):
    def start(self, directory, ranks, steps, *options):
        command = [sys.executable, "-B", PROGRAM, f"{self.folder}/{directory}", str(ranks), str(steps), *options]
        return subprocess.Popen(command, env={**os.environ, "BATON_CONNECT": self.server.address}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def weights(self, *arguments):
        """What a run that is left alone ends with, and what it said."""
        said, complaints = (run := self.start(*arguments)).communicate(timeout=120)
        self.assertEqual((run.returncode, complaints), (0, ""))
        return re.search("weights ([0-9a-f]{8})", said)[1], said

    def killed(self, directory, ranks, victim):
        """Kills a rank in the middle of a run that would be long."""
        run = self.start(directory, ranks, 100_000)
        pids = {}
        for line in run.stdout:
            if match := re.match(r"rank (\d+) is process (\d+)", line):
                pids[int(match[1])] = int(match[2])
            if line.startswith("step ") and len(baton.checkpoints(f"{self.folder}/{directory}")) >= 2:
                break
        os.kill(pids[victim], signal.SIGKILL)
        _, complaints = run.communicate(timeout=60)
        self.assertNotEqual(run.returncode, 0)
        for survivor in set(pids) - {victim}:
            self.assertRegex(complaints, rf"rank {survivor}: .*rank {victim}\b")

    def test_goes_on_where_it_was_killed_with_other_ranks(self):
        with Server() as self.server:
            self.killed("killed", 3, victim=2)
            self.killed("killed", 2, victim=0)
            reached = baton.checkpoints(f"{self.folder}/killed")[-1].step
            steps = reached + 30
            resumed, said = self.weights("killed", 4, steps)
            self.assertIn(f"4 ranks begin at step {reached}", said)
            alone, _ = self.weights("alone", 1, steps)
        self.assertEqual(resumed, alone)

    def test_does_not_begin_anew_on_damaged_weights(self):
        with Server() as self.server:
            self.weights("damaged", 2, 40)
            for shard in Path(self.folder, "damaged").glob("*/*/r00000.safetensors"):
                with open(shard, "r+b") as file:
                    file.seek(-4, os.SEEK_END)
                    file.write(b"\xff\xfe\x7f\x7f")
            said, complaints = (run := self.start("damaged", 2, 60)).communicate(timeout=120)
        self.assertNotEqual(run.returncode, 0)
        self.assertNotIn("begin at step", said)
        for rank in range(2):
            self.assertRegex(complaints, f"rank {rank}: CORRUPT: .*no checkpoint is whole")

    def test_goes_on_with_torch(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("python3-torch is not installed")
        with Server() as self.server:
            self.weights("torch", 2, 40, "--torch")
            _, said = self.weights("torch", 1, 50, "--torch")
        self.assertIn("1 ranks begin at step 40", said)


if __name__ == "__main__":
    unittest.main()
