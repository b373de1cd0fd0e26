"""What the tests of the package share."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy

BATON = os.environ["BATON"]


class Folder(unittest.TestCase):
    """A test with a directory of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def assertSame(self, one, other, where="state"):
        """The same types and values, to the last bit."""
        self.assertIs(type(one), type(other), where)
        if isinstance(one, dict):
            self.assertEqual(list(one), list(other), where)
            for key in one:
                self.assertSame(one[key], other[key], f"{where}[{key!r}]")
        elif isinstance(one, (list, tuple)):
            self.assertEqual(len(one), len(other), where)
            for at, (left, right) in enumerate(zip(one, other)):
                self.assertSame(left, right, f"{where}[{at}]")
        elif isinstance(one, (numpy.ndarray, numpy.generic)):
            self.assertEqual((one.dtype.newbyteorder("="), one.shape), (other.dtype, other.shape), where)
            self.assertEqual(one.astype(one.dtype.newbyteorder("=")).tobytes(), other.tobytes(), where)
        elif type(one).__name__ == "Tensor":
            self.assertEqual((one.dtype, one.shape), (other.dtype, other.shape), where)
            self.assertEqual(bits(one), bits(other), where)
        else:
            self.assertEqual(repr(one), repr(other), where)


def bits(tensor):
    """The elements of a torch tensor as bytes, whatever they are."""
    import torch

    widths = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(widths[flat.element_size()]).numpy().tobytes()


class Server:
    """A coordinator on free ports; gone with the block."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [BATON, "serve", "--data", self.folder.name + "/data", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"],
            stdout=subprocess.PIPE, text=True)
        self.address = re.search(r"127\.0\.0\.1:\d+", self.process.stdout.readline())[0]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.process.stdout.close()
        self.folder.cleanup()


def on_all(groups, action):
    """Runs `action` for each rank on a thread of its own: what it returned, or raised, by rank."""
    outcomes = [None] * len(groups)

    def act(rank):
        try:
            outcomes[rank] = action(groups[rank])
        except Exception as error:
            outcomes[rank] = error

    threads = [threading.Thread(target=act, args=(rank,)) for rank in range(len(groups))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def python(code, *arguments, **options):
    """Another interpreter, which runs `code`."""
    return subprocess.Popen([sys.executable, "-B", "-c", code, *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)
