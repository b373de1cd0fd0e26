#!/usr/bin/python3
"""A training loop that can be killed at any moment and goes on from its newest checkpoint, with as many ranks as it is
given this time. The ranks are processes; they meet at a coordinator (./dev run starts one; BATON_CONNECT says where it is).

usage: training.py DIRECTORY RANKS STEPS [--torch]
"""
import os
import subprocess
import sys
import zlib

import numpy

import baton

ROWS, COLUMNS = 40, 100
LEARNING_RATE, MOMENTUM = 0.05, 0.9


def my_rows(group):
    """Every rank has some rows of the weights, and of all that belongs to them."""
    return ROWS * group.rank // group.world_size, ROWS * (group.rank + 1) // group.world_size


def train(group, directory, steps, tensor):
    begin, end = my_rows(group)
    wanted = numpy.random.default_rng(7).standard_normal((ROWS, COLUMNS)).astype(numpy.float32)
    truth = tensor(wanted[begin:end].copy())
    weights, momentum = (tensor(numpy.zeros((end - begin, COLUMNS), numpy.float32)) for _ in range(2))
    part = lambda rows: baton.Shard(rows, (ROWS, COLUMNS), (begin, 0))
    state = {"weights": part(weights), "optimizer": {"momentum": part(momentum), "lr": LEARNING_RATE}, "step": 0}

    # Where it was: from the newest checkpoint that is whole, whoever wrote it. NOT_FOUND says that there is none, and
    # nothing was read; after any other error the state holds anything.
    try:
        baton.load(directory, into=state, group=group, fall_back=True)
    except baton.Error as error:
        if error.code != "NOT_FOUND":
            raise
    if group.rank == 0:
        print(f"{group.world_size} ranks begin at step {state['step']}", flush=True)

    while state["step"] < steps:
        state["step"] += 1
        batch = tensor(numpy.random.default_rng(state["step"]).standard_normal(COLUMNS).astype(numpy.float32))
        difference = ((weights - truth) * batch).sum(1)
        momentum *= MOMENTUM
        momentum += difference[:, None] * batch / COLUMNS
        weights -= LEARNING_RATE * momentum
        loss = group.all_reduce("loss", float((difference * difference).sum()), lambda a, b: a + b)
        if state["step"] % 20 == 0:
            # Comes back when the state has been copied; it is written while training goes on.
            baton.save_async(directory, state, step=state["step"], group=group)
            if group.rank == 0:
                print(f"step {state['step']}, loss {loss:.3f}", flush=True)

    rows = group.gather("weights", numpy.asarray(weights).tobytes())
    if group.rank == 0:
        print(f"trained up to step {steps}, weights {zlib.crc32(b''.join(rows)):08x}")


def be_a_rank(directory, steps, tensor):
    try:
        with baton.Group.from_environment("training") as group:
            train(group, directory, steps, tensor)
    except baton.Error as error:  # of whichever rank it was: all hear the same, and are started again together
        sys.exit(f"rank {os.environ['RANK']}: {error}")


def start_ranks(count):
    ranks = []
    for rank in range(count):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(count)}
        ranks.append(subprocess.Popen([sys.executable, *sys.argv], env=environment))
        print(f"rank {rank} is process {ranks[-1].pid}", flush=True)
    return max(abs(rank.wait()) for rank in ranks)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    if "RANK" not in os.environ:
        return start_ranks(int(sys.argv[2]))
    tensor = lambda array: array
    if "--torch" in sys.argv:
        import torch

        tensor = torch.from_numpy
    return be_a_rank(sys.argv[1], int(sys.argv[3]), tensor)


if __name__ == "__main__":
    sys.exit(main())
