"""Saving and loading states."""
from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Mapping

import numpy

from . import _arguments, _baton, _open, _plain, _tensors
from ._errors import Error
from ._group import Group, alone, check_group
from ._state import Flat, Saved, flatten, put_into

DEADLINE = 600.0  # seconds for each step that waits for other ranks
STAGING_BYTES = 8 << 30


@dataclass
class Loaded:
    """A state, where it came from, and how it fits what was wanted."""

    state: Any
    checkpoint: _baton.Checkpoint
    missing: list[str] = field(default_factory=list)  # wanted, and not there
    unexpected: list[str] = field(default_factory=list)  # there, and not wanted
    mismatched: list[str] = field(default_factory=list)  # there with another dtype or shape; in words
    passed_over: list[str] = field(default_factory=list)  # checkpoints that could not be loaded, and why
    bytes_read: int = 0

    @property
    def step(self) -> int:
        return self.checkpoint.step


class Checkpoints:
    """The checkpoints in one place: a directory, or s3://BUCKET/PREFIX.

    With a group every rank has one, and makes the same calls in the same order. They open it together, so opening it
    waits for the others too. A state with more than `staging_bytes` on this rank is not copied by save_async.
    """

    def __init__(self, path: str | os.PathLike[str], group: Group | None = None, *, create: bool = True,
                 staging_bytes: int = STAGING_BYTES, deadline: float = DEADLINE) -> None:
        check_group(group)
        self.path = os.fspath(path)
        self._is_alone = group is None
        self._lock = threading.Lock()
        # Ranks have an order to keep; a process alone does not, and its threads may take turns.
        self._turn: ContextManager[object] = self._lock if group is None else contextlib.nullcontext()
        self._store: _baton.Store | None = _baton.Store(self.path, (group or alone())._joined(), create,
                                                         _arguments.staging_bytes(staging_bytes),
                                                         _arguments.seconds(deadline))
        if group is not None:
            group._users.add(self)
        _open.until_exit(self)

    def save(self, state: Mapping[str, Any], *, step: int = 0, incremental: bool = False, sha256: bool = False,
             custom: Mapping[str, str] | None = None, deadline: float = DEADLINE) -> _baton.Saved:
        """Saves the state as that of a step; it is durable when this returns."""
        store, within = self._opened(), _arguments.seconds(deadline)
        parts = self._taken_apart(step, state, custom, lambda number, why: store.refuse(number, why, within))
        with self._turn:
            return store.save(*parts, incremental, sha256, within)

    def save_async(self, state: Mapping[str, Any], *, step: int = 0, incremental: bool = False, sha256: bool = False,
                   custom: Mapping[str, str] | None = None, deadline: float = DEADLINE) -> _baton.Ticket:
        """Copies the state and returns; the copy is written and committed behind your back.

        Waits for the save before, whose error, if nobody heard of it, is raised here.
        """
        store, within = self._opened(), _arguments.seconds(deadline)
        parts = self._taken_apart(step, state, custom, lambda number, why: store.refuse_async(number, why, within))
        with self._turn:
            return store.save_async(*parts, incremental, sha256, within)

    def load(self, name: str | int = "latest", *, into: Any = None, strict: bool = True, fall_back: bool = False,
             deadline: float = DEADLINE) -> Loaded:
        """Loads the newest checkpoint, or the one that is named ("step-0000001000", or its step).

        Without `into` it is the state as it was saved, whole. `into` is a state whose tensors and arrays are filled in
        place, each Shard with its part, and whose plain values are replaced; what does not fit is an error, or, unless
        `strict`, in what is returned. With `fall_back`, a checkpoint that is damaged is passed over for an older one.
        """
        within = _arguments.seconds(deadline)
        wishes = _Whole() if into is None else _Into(into, strict, self._is_alone)
        try:
            with self._turn:
                result = self._opened().load(_arguments.name(name), wishes, strict, fall_back, within)
        except Error:
            if wishes.trouble is not None:
                raise wishes.trouble from None
            raise
        return Loaded(wishes.finish(), result.checkpoint, result.missing + wishes.missing,
                      result.unexpected + wishes.unexpected, result.mismatched, result.passed_over, result.bytes_read)

    def committed(self) -> list[_baton.Checkpoint]:
        """What was committed, the oldest first."""
        return self._opened().committed()

    def close(self) -> None:
        """Waits for the save in the background; raises its error if nobody has heard of it."""
        store, self._store = self._store, None
        if store is not None:
            _open.forget(self)
            try:
                with self._turn:
                    store.close()
            finally:
                del store  # which keeps the group joined, and an error keeps what its frames have

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _let_memory_go(self) -> bool:
        """Of the last copy. Whether no save is under way, nor was there one whose error somebody may still have to hear."""
        store = self._store
        if store is None:
            return True
        if not self._lock.acquire(blocking=False):
            return False  # another thread uses it
        try:
            return store.let_memory_go()
        except Error:  # a call that was interrupted still uses it
            return False
        finally:
            self._lock.release()

    def _opened(self) -> _baton.Store:
        if self._store is None:
            raise Error("CLOSED", f"the checkpoints in {self.path} were closed")
        return self._store

    def _taken_apart(self, step: int, state: Mapping[str, Any], custom: Mapping[str, str] | None,
                     refuse: Callable[[int, str], None],
                     ) -> tuple[int, list[_baton.Slice], dict[str, str], dict[str, str]]:
        """The step, the tensors, what is no tensor, and the texts that go with them."""
        number = 0
        try:
            number = _arguments.step(step)
            flat, texts = flatten(state), _arguments.texts(custom)
            slices = [_tensors.source(value, name) for name, value in flat.tensors.items()]
            objects = flat.objects()
            for text in (*objects, *texts, *texts.values()):
                if type(text) is not str:
                    raise TypeError(f"custom is a dict of texts, and {text!r} is none")
                text.encode()  # a lone surrogate is no text
            return number, slices, objects, texts
        except Exception as trouble:  # whatever it is, the other ranks would wait for this one
            speaks_for_itself = isinstance(trouble, (TypeError, Error)) or type(trouble) is ValueError
            said = str(trouble) if speaks_for_itself else f"{type(trouble).__name__}: {trouble}"
            with contextlib.suppress(Error):  # they heard it, or did something wrong themselves
                with self._turn:
                    refuse(number, said.encode(errors="backslashreplace").decode())
            raise


class _Wishes:
    """What is wanted of a checkpoint, said when it is known what is in it. Keeps all it was loaded into."""

    def __init__(self) -> None:
        self.trouble: Exception | None = None
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.slices: list[_baton.Slice] = []

    def __call__(self, tensors: list[tuple[str, str, list[int]]], objects: dict[str, str]) -> list[_baton.Slice]:
        self.trouble, self.missing, self.unexpected, self.slices = None, [], [], []
        try:
            self.choose(tensors, Saved.of(objects))
        except Exception as trouble:
            self.trouble = trouble
            raise
        return self.slices

    def choose(self, tensors: list[tuple[str, str, list[int]]], saved: Saved) -> None:
        raise NotImplementedError

    def finish(self) -> Any:
        raise NotImplementedError


class _Whole(_Wishes):
    """All there is, as it was."""

    def choose(self, tensors: list[tuple[str, str, list[int]]], saved: Saved) -> None:
        kinds = {node.get("name", name): node["tensor"] for name, node in saved.leaves() if "tensor" in node}
        self.saved, self.made = saved, {}
        for name, word, shape in tensors:
            made = _tensors.empty(kinds.get(name, "numpy"), word, tuple(shape), name)
            self.made[name] = made
            self.slices.append(_tensors.target(made, name)[0])

    def finish(self) -> Any:
        return self.saved.build(self.made)


def _few(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


class _Into(_Wishes):
    """What a state has room for."""

    def __init__(self, state: Any, strict: bool, is_alone: bool) -> None:
        super().__init__()
        self.state = state
        self.strict = strict
        self.is_alone = is_alone
        self.tried: list[list[_baton.Slice]] = []  # memory is told apart by its address, so none is let go meanwhile

    def choose(self, tensors: list[tuple[str, str, list[int]]], saved: Saved) -> None:
        self.tried.append(self.slices)
        flat = flatten(self.state, tie=False)
        tied = {name: node["name"] for name, node in saved.leaves() if "name" in node}
        self.put_back: list[Callable[[], None]] = []
        self.replaced: dict[str, Any] = {}
        for name, value in flat.tensors.items():
            if isinstance(value, numpy.generic):
                value = self.replaced[name] = numpy.array(value)
            piece, put_back = _tensors.target(value, tied.get(name, name))
            self.slices.append(piece)
            self.put_back.append(put_back)
        self._choose_plain(flat, saved)

    def _choose_plain(self, flat: Flat, saved: Saved) -> None:
        there = set(saved.plain)
        self.missing = sorted(set(flat.plain) - there)
        # What this rank has no room for, another one may have.
        leaves = {name for name, node in saved.leaves() if "plain" in node}
        self.unexpected = sorted(leaves - set(flat.plain)) if self.is_alone else []
        if self.strict and (self.missing or self.unexpected):
            parts = [("missing", self.missing), ("not wanted", self.unexpected)]
            said = "; ".join(f"{what}: {_few(names)}" for what, names in parts if names)
            raise Error("CONFLICT", f"{said}; change what it is loaded into, or do without strict")
        for name in set(flat.plain) & there:
            self.replaced[name] = _plain.from_json(saved.plain[name])

    def finish(self) -> Any:
        for put_back in self.put_back:
            put_back()
        scalars = {name: value[()] for name, value in self.replaced.items() if isinstance(value, numpy.ndarray)}
        return put_into(self.state, {**self.replaced, **scalars})
