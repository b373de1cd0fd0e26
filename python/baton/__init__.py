"""baton: checkpoints of training jobs, and tasks for unreliable workers.

    import baton
    baton.save("checkpoints", {"model": model.state_dict(), "step": 1000}, step=1000)
    state = baton.load("checkpoints")

Without a group a process saves alone; with one, its ranks save together, each its part. docs/python.md has it all.
"""
from __future__ import annotations

import os
from typing import Any, Mapping

from ._baton import Checkpoint, Leased, Saved, Submitted, Task, Ticket, Verdict, __version__
from ._checkpoints import DEADLINE, Checkpoints, Loaded
from ._client import Client
from ._errors import Error
from ._group import Group, check_group, threads
from ._tensors import Shard

__all__ = [
    "Checkpoint", "Checkpoints", "Client", "Error", "Group", "Leased", "Loaded", "Saved", "Shard", "Submitted", "Task",
    "Ticket", "Verdict", "__version__", "checkpoints", "load", "save", "save_async", "threads",
]

# A save in the background goes on after its call, so a place that was saved to stays open: for as long as its group,
# whose ranks would have to open it together again; without one, until the next place is opened and nothing is under way.
_alone: dict[str, Checkpoints] = {}


def _place(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    return name if name.startswith("s3://") else os.path.abspath(name)


def _at(path: str | os.PathLike[str], group: Group | None, deadline: float) -> Checkpoints:
    check_group(group)
    places, name = _alone if group is None else group._places, _place(path)
    place = places.get(name)
    if place is None or place._store is None:  # it was left to the process that this one was forked from
        for other, opened in list(places.items()):  # each has memory for a copy of its state
            if opened._let_memory_go() and group is None:
                places.pop(other, None)  # not closed: another thread may be about to use it
        place = places[name] = Checkpoints(name, group, deadline=deadline)
    return place


def _looked_at(path: str | os.PathLike[str], group: Group | None, deadline: float = DEADLINE) -> Checkpoints:
    """Without making the directory, unless other ranks may be about to."""
    return _at(path, group, deadline) if group is not None or _place(path) in _alone else Checkpoints(path, create=False)


def save(path: str | os.PathLike[str], state: Mapping[str, Any], *, step: int = 0, group: Group | None = None,
         incremental: bool = False, sha256: bool = False, custom: Mapping[str, str] | None = None,
         deadline: float = DEADLINE) -> Saved:
    """Saves a nested state of tensors, arrays and plain values; it is durable when this returns.

    With a group all its ranks call this and make one checkpoint, or all raise the same error. What several ranks have
    is written by one of them; a part of a tensor is a Shard. What would need pickle is a TypeError that names it.
    With `incremental`, what the newest checkpoint has too is referred to there. With `sha256`, each slice has a SHA-256
    too, and is read whole and checked against it by every load that touches it.
    """
    return _at(path, group, deadline).save(state, step=step, incremental=incremental, sha256=sha256, custom=custom,
                                           deadline=deadline)


def save_async(path: str | os.PathLike[str], state: Mapping[str, Any], *, step: int = 0, group: Group | None = None,
               incremental: bool = False, sha256: bool = False, custom: Mapping[str, str] | None = None,
               deadline: float = DEADLINE) -> Ticket:
    """Copies the state and returns; the copy is written and committed behind your back.

    The ticket tells what it came to. An error that nobody heard is raised by the next save, or told at exit.
    """
    return _at(path, group, deadline).save_async(state, step=step, incremental=incremental, sha256=sha256, custom=custom,
                                                 deadline=deadline)


def load(path: str | os.PathLike[str], name: str | int = "latest", *, into: Any = None, group: Group | None = None,
         strict: bool = True, fall_back: bool = False, deadline: float = DEADLINE) -> Any:
    """Loads the newest checkpoint, or the one of that name or step: the state as it was saved, whole.

    `into` is a state that is filled in place, and returned; its Shards take their parts of what any number of ranks
    wrote. With a group all ranks load the same checkpoint. Checkpoints.load tells more about how it went.
    """
    place = _looked_at(path, group, deadline)
    return place.load(name, into=into, strict=strict, fall_back=fall_back, deadline=deadline).state


def checkpoints(path: str | os.PathLike[str]) -> list[Checkpoint]:
    """What was committed there, the oldest first."""
    return _looked_at(path, None).committed()
