#!/usr/bin/env python3
"""What `baton` and `sim` say to a command line that makes no sense: exit code 64, one line on standard error.

usage: usage.py BATON SIM
"""
import subprocess
import sys
import tempfile

BATON, SIM = sys.argv[1:]

# (program, arguments, a part of what it says)
CASES = [
    (BATON, "", "baton: a command is missing; baton --help lists them"),
    (BATON, "frob", "baton: there is no command 'frob'; baton --help lists them"),
    (BATON, "validate x.yaml", "baton: there is no command 'validate' (did you mean 'baton pipeline validate'?); baton --help lists them"),
    (BATON, "help frob", "baton: there is no command 'frob'; baton --help lists them"),
    (BATON, "help log frob", "baton: there is no command 'frob'; baton log --help lists them"),
    (BATON, "--connect x:1 stats", "baton: the option '--connect' stands behind the command it is for: baton COMMAND --connect"),
    (BATON, "stream --connect=x:1 status",
     "baton: the option '--connect' stands behind the command it is for: baton stream COMMAND --connect"),
    (BATON, "log --connect x:1 stat x", "baton: there is no option '--connect'; baton log --help lists them"),
    (BATON, "--frob stats", "baton: there is no option '--frob'; baton --help lists them"),
    (BATON, "frob log stat x", "baton: there is no command 'frob'; baton --help lists them"),
    (BATON, "log", "baton: a command is missing; baton log --help lists them"),
    (BATON, "log frob", "baton: there is no command 'frob'; baton log --help lists them"),
    (BATON, "log dump", "baton: directory is required; baton log dump --help"),
    (BATON, "log dump x y", "baton: 'y' is one argument too many; baton log dump --help"),
    (BATON, "log dump x --frob", "baton: there is no option '--frob'; baton log dump --help lists them"),
    (BATON, "log dump x --from -1", "baton: --from: -1 is not from 0 to"),
    (BATON, "log dump x --from", "baton: --from needs a value"),
    (BATON, "log dump x --from 99999999999999999999", "baton: --from: 99999999999999999999 is not from 0 to"),
    (BATON, "demo --tasks abc", "baton: --tasks: 'abc' is not a number; baton demo --help"),
    (BATON, "demo --tasks 1x", "baton: --tasks: '1x' is not a number"),
    (BATON, "demo --tasks 0", "baton: --tasks: 0 is not from 1 to 100000"),
    (BATON, "demo --data a --data b", "baton: --data may be given only once"),
    (SIM, "", "sim: one of --seeds, --seed, --replay and --canary is needed"),
    (SIM, "--seeds abc", "sim: --seeds: 'abc' is not a number"),
    (SIM, "--seeds -1", "sim: --seeds: '-1' is not a number"),
    (SIM, "--seeds", "sim: --seeds needs a value"),
    (SIM, "--seeds 0", "sim: --seeds: 0 shows nothing"),
    (SIM, "--seeds 1 --frob", "sim: there is no option '--frob'"),
    (SIM, "--seeds 1 --save x", "sim: --save goes with --seed"),
    (SIM, "--seed 1 --save /nosuch/x", "sim: cannot write /nosuch/x"),
    (SIM, "--replay /nosuch", "sim: cannot open /nosuch"),
    (SIM, "--replay /dev/null", "sim: /dev/null: there is no scenario"),
]


def run(program, arguments, folder):
    return subprocess.run([program, *arguments.split()], capture_output=True, text=True, cwd=folder, timeout=60)


failed = 0
with tempfile.TemporaryDirectory() as folder:
    for program, arguments, expected in CASES:
        done = run(program, arguments, folder)
        if done.returncode != 64 or expected not in done.stderr or done.stderr.count("\n") != 1 or done.stdout:
            print(f"{program} {arguments}: exit {done.returncode}, said {done.stdout!r} {done.stderr!r}, not {expected!r}")
            failed += 1
    # Help is no mistake, and each command has its own.
    for program, arguments, expected in [
            (BATON, "--help", "Exit codes: 0"), (BATON, "help", "Exit codes: 0"),
            (BATON, "help log verify", "Exit codes: 0 intact"), (BATON, "help submit q x", "Hands in tasks"), (BATON, "--version", "."), (BATON, "log verify --help", "Exit codes: 0 intact"),
            (BATON, "log dump --help", "Example: " + BATON + " log dump data"), (SIM, "--help", "usage: sim")]:
        done = run(program, arguments, folder)
        if done.returncode != 0 or expected not in done.stdout or done.stderr:
            print(f"{program} {arguments}: exit {done.returncode}, said {done.stdout!r} {done.stderr!r}")
            failed += 1
sys.exit(1 if failed else 0)
