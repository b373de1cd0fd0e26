"""Ranks that meet."""
from __future__ import annotations

import functools
import json
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence

from . import _baton, _open, _plain
from ._arguments import rank as a_rank, seconds, world_size as a_world_size
from ._connection import connection
from ._errors import Error

DEADLINE = 600.0

if TYPE_CHECKING:  # it saves with groups, and so knows them
    from ._checkpoints import Checkpoints as _Place


class Group:
    """This process as a rank of a job, whose ranks meet at a coordinator.

    Every rank makes the same calls in the same order, each with a name; if names differ, all hear who is where. Every
    wait ends, and its error names the ranks that are missing. One thread at a time uses a group.

    Values are what JSON can hold, tuples, or bytes; 3 MiB at most.
    """

    closes_at = 1

    def __init__(self, name: str, rank: int, world_size: int, address: str | Sequence[str] | None = None, *,
                 time_to_live: float = 10.0, join_deadline: float = 30.0, **options: Any) -> None:
        """Joins. `address`, or BATON_CONNECT, is that of the coordinator; the options are those of Client."""
        self._seat: _baton.Seat | None = _baton.join(
            connection(address, **options), name, a_rank(rank), a_world_size(world_size), time_to_live, join_deadline)
        self._begin()

    @classmethod
    def from_environment(cls, name: str | None = None, **options: Any) -> Group:
        """As RANK, WORLD_SIZE and BATON_GROUP say, as launchers of training jobs set them."""
        return cls(name or _variable("BATON_GROUP", "the name of the group"), _number("RANK", "which rank this process is"),
                   _number("WORLD_SIZE", "how many ranks there are"), **options)

    @classmethod
    def _of(cls, seat: _baton.Seat) -> Group:
        group = cls.__new__(cls)
        group._seat = seat
        group._begin()
        return group

    def _begin(self) -> None:
        self._places: dict[str, _Place] = {}  # where it saves: baton.save, baton.save_async
        self._users: weakref.WeakSet[_Place] = weakref.WeakSet()  # those too that the caller has opened
        _open.until_exit(self)

    @property
    def rank(self) -> int:
        return self._joined().rank

    @property
    def world_size(self) -> int:
        return self._joined().world_size

    @property
    def generation(self) -> int:
        """Grows whenever the ranks are put together anew; ranks of an older one take part in nothing."""
        return self._joined().generation

    def barrier(self, name: str, deadline: float = DEADLINE) -> None:
        """Comes back when all ranks have come."""
        self._joined().barrier(name, seconds(deadline))

    def broadcast(self, name: str, value: Any = None, root: int = 0, deadline: float = DEADLINE) -> Any:
        """The root's value, on every rank."""
        mine = value if self.rank == root else None
        return _value(self._joined().broadcast(name, _bytes(mine, name), root, seconds(deadline)))

    def gather(self, name: str, value: Any, root: int = 0, deadline: float = DEADLINE) -> list[Any]:
        """All values, by rank, at the root; elsewhere none."""
        brought = self._joined().gather(name, _bytes(value, name), root, seconds(deadline))
        return [_value(each) for each in brought]

    def all_gather(self, name: str, value: Any, deadline: float = DEADLINE) -> list[Any]:
        """All values, by rank, on every rank."""
        brought = self._joined().all_gather(name, _bytes(value, name), seconds(deadline))
        return [_value(each) for each in brought]

    def all_reduce(self, name: str, value: Any, reduce: Callable[[Any, Any], Any], deadline: float = DEADLINE) -> Any:
        """All values folded in the order of ranks, by each rank itself: the same everywhere, floats too."""
        brought = self._joined().all_to_reduce(name, _bytes(value, name), seconds(deadline))
        return functools.reduce(reduce, map(_value, brought))

    def tell_doing(self, doing: str) -> None:
        """Told to others who wait for this rank in vain: "epoch 3, evaluation". From any thread."""
        self._joined().tell_doing(doing)

    def close(self) -> None:
        """Waits for saves in the background, then leaves. Whoever waits for this rank hears it."""
        _open.forget(self)
        try:
            _close_each(list(self._users))
        finally:
            self._places, self._seat = {}, None

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _joined(self) -> _baton.Seat:
        if self._seat is None:
            raise Error("CLOSED", "this group was left")
        return self._seat


def _close_each(places: Iterable[_Place]) -> None:
    """Goes on after an error, which is the context of the next one."""
    handled = sys.exc_info()[1]  # by the caller: the context of the first one
    last: BaseException | None = None
    for place in places:
        try:
            place.close()
        except BaseException as error:
            if last is not None:
                first = error
                while first.__context__ is not None and first.__context__ is not handled:
                    first = first.__context__
                first.__context__ = last
            last = error
    if last is not None:
        context = last.__context__
        try:
            raise last
        finally:
            last.__context__ = context  # for which raising has put what the caller handles


def _variable(name: str, meaning: str) -> str:
    if not os.environ.get(name):
        raise Error("INVALID_REQUEST", f"{name} is not set in the environment; set it to {meaning}, or call Group itself")
    return os.environ[name]


def _number(name: str, meaning: str) -> int:
    text = _variable(name, meaning)
    if not text.isdecimal():
        raise Error("INVALID_REQUEST", f'{name} is "{text}" in the environment; set it to a number: {meaning}')
    return int(text)


def threads(world_size: int) -> list[Group]:
    """Ranks that are threads of this process: one group for each, in their order."""
    return [Group._of(seat) for seat in _baton.join_threads(a_world_size(world_size))]


def alone() -> Group:
    return threads(1)[0]


def check_group(group: Any) -> None:
    if group is not None and not isinstance(group, Group):
        raise TypeError(f"a group is a baton.Group, not {group!r}")


# What a rank cannot bring is told to the others as a str in place of bytes.
def _bytes(value: Any, name: str) -> bytes | str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b"b" + bytes(value)
    try:
        return b"j" + _plain.to_json(value, name).encode()
    except TypeError as trouble:
        return str(trouble)
    except Exception as trouble:  # whatever it is, the other ranks would wait for this one
        return f'"{name}": {type(trouble).__name__}: {trouble}'


def _value(brought: bytes) -> Any:
    return brought[1:] if brought[:1] == b"b" else _plain.decoded(json.loads(brought[1:]))
