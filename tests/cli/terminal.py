#!/usr/bin/env python3
"""The `baton` command on a terminal: top draws, follows the size, and gives the terminal back; submit shows a bar.

usage: terminal.py BATON
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

BATON = sys.argv[1]
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class OnTerminal:
    """A program on a terminal of its own; `screen` is all that it wrote."""

    def __init__(self, arguments, lines=24, columns=80, stdin=None):
        self.ours, theirs = pty.openpty()
        self.resize(lines, columns)
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        self.process = subprocess.Popen([BATON, *arguments], stdin=theirs if stdin is None else stdin, stdout=theirs,
                                        stderr=theirs, start_new_session=True)
        self.screen = b""

    def resize(self, lines, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read_until(self, part, seconds=30):
        end = time.monotonic() + seconds
        while part not in self.screen:
            if time.monotonic() > end:
                raise AssertionError(f"{part!r} did not come; the screen is {self.screen!r}")
            if select.select([self.ours], [], [], 0.1)[0]:
                self.screen += os.read(self.ours, 65536)

    def end(self):
        code = self.process.wait(timeout=30)
        while select.select([self.ours], [], [], 0)[0]:
            self.screen += os.read(self.ours, 65536)
        after = termios.tcgetattr(self.theirs)
        os.close(self.ours)
        os.close(self.theirs)
        return code, after == self.before


def text_of(screen):
    return re.sub(rb"\x1b\[[?0-9;]*[a-zA-Z]", b"", screen)


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def wait_for_file(path):
    end = time.monotonic() + 30
    while not os.path.exists(path):
        expect(time.monotonic() < end, f"there is no {path}")
        time.sleep(0.01)


def frames(screen):
    """The pictures, each as its lines."""
    return [text_of(frame).split(b"\r\n") for frame in screen.split(b"\x1b[H")[1:]]


with tempfile.TemporaryDirectory() as folder:
    server = subprocess.Popen([BATON, "serve", "--data", folder + "/data", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"],
                              stdout=subprocess.PIPE, text=True)
    try:
        os.environ["BATON_CONNECT"] = re.search(r"127\.0\.0\.1:\d+", server.stdout.readline())[0]
        for number in range(30):
            subprocess.run([BATON, "submit", f"queue-{number}", "x"], check=True, stdout=subprocess.DEVNULL)

        # It draws into the size there is, again when that changes, and q ends it.
        top = OnTerminal(["top", "--every", "100ms"], lines=15, columns=60)
        top.read_until(b"more")
        picture = frames(top.screen)[0]
        expect(top.screen.startswith(ENTER), top.screen)
        expect(len(picture) <= 15 and max(map(len, picture)) <= 60, picture)
        expect(any(line.startswith(b"QUEUE ") for line in picture), picture)
        top.screen = b""
        top.resize(50, 30)
        top.read_until(b"queue-29")
        top.read_until(b"\x1b[J")
        picture = frames(top.screen)[-1]
        expect(max(len(line.decode(errors="ignore")) for line in picture) <= 30, picture)
        os.write(top.ours, b"q")
        code, restored = top.end()
        expect(code == 0 and restored and top.screen.endswith(b"\x1b[?25h" + LEAVE), (code, restored, top.screen[-80:]))

        # While nobody answers, the first line says for how long, and fits too.
        gone = subprocess.Popen([BATON, "serve", "--data", folder + "/gone", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"],
                                stdout=subprocess.PIPE, text=True)
        try:
            where = re.search(r"127\.0\.0\.1:\d+", gone.stdout.readline())[0]
            top = OnTerminal(["top", "--every", "100ms", "--connect", where], lines=15, columns=30)
            top.read_until(b"QUEUE")
        finally:
            gone.kill()
            gone.wait(timeout=30)
        top.read_until(b" ago: ")
        top.screen = top.screen[top.screen.rindex(b"\x1b[H"):]
        top.read_until(b"\x1b[J")
        picture = frames(top.screen)[0]
        expect(picture[0].startswith(b"as of ") and max(map(len, picture)) <= 30, picture)
        top.process.send_signal(signal.SIGTERM)
        top.end()

        # However it ends, the terminal is as it was.
        for number, ends in [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGHUP, 0),
                             (signal.SIGSEGV, -signal.SIGSEGV), (signal.SIGABRT, -signal.SIGABRT)]:
            top = OnTerminal(["top"])
            top.read_until(b"QUEUE")
            top.process.send_signal(number)
            code, restored = top.end()
            expect(code == ends and restored and LEAVE in top.screen, (number, code, restored, top.screen[-80:]))

        # A long submission shows how far it has got, and nothing of it is left at the end.
        lines = subprocess.Popen(["bash", "-c", "seq 3; sleep 0.3; seq 3; sleep 0.3; seq 3"], stdout=subprocess.PIPE)
        submit = OnTerminal(["submit", "many", "--lines"], stdin=lines.stdout)
        submit.read_until(b"9 tasks submitted")
        code, _ = submit.end()
        expect(code == 0 and b" tasks   " in submit.screen and b" tasks/s" in submit.screen, submit.screen)
        expect(b"\r\x1b[K9 tasks submitted" in submit.screen, submit.screen)

        # A run draws into the size there is, and answers Ctrl-C at once.
        os.environ["TERM"] = "xterm"
        os.environ.pop("CI", None)
        os.environ.pop("BATON_CONNECT")
        with open(folder + "/p.yaml", "w") as file:
            file.write("version: 1\nmodules:\n")
            file.writelines(f"  module-with-a-long-name-{number}: {{ run: sleep 1000 }}\n" for number in range(9))
        run = OnTerminal(["run", folder + "/p.yaml", "-j", "9"], lines=6, columns=30)
        run.read_until(b"9 at work")
        pictures = [text_of(picture).split(b"\r\n") for picture in run.screen.split(b"\x1b[J")[1:]]
        expect(all(len(picture) <= 6 and max(map(len, picture)) < 30 for picture in pictures), pictures)
        run.process.send_signal(signal.SIGINT)
        run.read_until(b"! stopping 9 modules; Ctrl-C again ends it at once")
        code, _ = run.end()
        expect(code == 3, (code, run.screen))

        # A second one clears what was drawn, and leaves a line that says what was killed.
        with open(folder + "/p.yaml", "w") as file:
            file.write("version: 1\nmodules:\n  a: { stop_grace: 1h, run: \"trap '' TERM; echo > began; sleep 1000\" }\n")
        run = OnTerminal(["run", folder + "/p.yaml"])
        run.read_until(b"1 at work")
        wait_for_file(folder + "/began")
        run.process.send_signal(signal.SIGINT)
        run.read_until(b"! stopping 1 module")
        run.process.send_signal(signal.SIGINT)
        code, _ = run.end()
        expect(code == 130 and run.screen.endswith(b"\x1b[J! killed a\r\n"), (code, run.screen[-200:]))
    finally:
        server.terminate()
        server.wait(timeout=30)
