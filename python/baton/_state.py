"""A nested state as names, and back.

{"model": {"bias": tensor}, "lr": 0.1}  is  the tensor "model/bias", the plain value "lr", and a structure that says how
they belong together:  {"dict": [["model", {"dict": [["bias", {"tensor": "torch"}]]}], ["lr", {"plain": true}]]}

Whatever holds no tensor is one plain value, however deep it is; the state itself is always taken apart. In a name a key's
own "/" is "~1" and its "~" is "~0". Tied weights are one tensor: the second has the first one's name.
"""
from __future__ import annotations

import hashlib
import itertools
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Container, Iterator

from . import _plain, _tensors
from ._errors import Error

STRUCTURE = "~structure/"  # no key can make a name that begins so


def _below(name: str, key: Any) -> str:
    escaped = str(key).replace("~", "~0").replace("/", "~1")
    return f"{name}/{escaped}" if name else escaped


def _children(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(value.items() if type(value) in _plain.MAPPINGS else enumerate(value))


def _holds_tensor(value: Any) -> bool:
    if type(value) in _plain.CONTAINERS:
        return any(_holds_tensor(each) for _, each in _children(value))
    return _tensors.is_tensor(value)


@dataclass
class Flat:
    """A state taken apart."""

    tensors: dict[str, Any] = field(default_factory=dict)
    plain: dict[str, Any] = field(default_factory=dict)
    structure: Any = None

    def objects(self) -> dict[str, str]:
        """The plain values and the structure, each as JSON under its name.

        Ranks may have different parts of a state. So a structure is named by its content: those that are the same are
        one, and whoever loads puts the others together.
        """
        texts = {name: _plain.to_json(value, name) for name, value in self.plain.items()}
        structure = json.dumps(self.structure, ensure_ascii=False, separators=(",", ":"))
        texts[STRUCTURE + hashlib.sha256(structure.encode()).hexdigest()[:16]] = structure
        return texts


def flatten(state: Any, tie: bool = True) -> Flat:
    """Raises TypeError, with the name and the type, for what a checkpoint cannot hold."""
    if type(state) not in _plain.MAPPINGS:
        raise TypeError(f"a state is a dict, not a {type(state).__name__}")
    flat = Flat()
    seen: dict[Any, str] = {}
    containers: set[str] = set()

    def check_name(name: str, *taken: Container[str]) -> None:
        if any(name in names for names in taken):
            raise TypeError(f'two keys make the same name, "{name}"')

    def add(names: dict[str, Any], name: str, value: Any) -> None:
        check_name(name, flat.tensors, flat.plain, containers)
        names[name] = value

    def describe(value: Any, name: str) -> Any:
        kind = type(value)
        if kind in _plain.CONTAINERS and (not name or _holds_tensor(value)):
            check_name(name, flat.tensors, flat.plain)
            containers.add(name)
            if kind in _plain.MAPPINGS:
                for key in value:
                    _plain.check_key(name, key)
                parts = [[key, describe(each, _below(name, key))] for key, each in value.items()]
                return {_plain.MAPPINGS[kind]: parts}
            return {kind.__name__: [describe(each, _below(name, at)) for at, each in enumerate(value)]}
        if not _tensors.is_tensor(value):
            add(flat.plain, name, value)
            return {"plain": True}
        node = {"tensor": _tensors.kind_of(value)}
        memory = _tensors.same_memory(value) if tie else None
        if memory in seen:
            return {**node, "name": seen[memory]}
        add(flat.tensors, name, value)
        if memory is not None:
            seen[memory] = name
        return node

    flat.structure = describe(state, "")
    return flat


@dataclass
class Saved:
    """What a checkpoint says of the state in it."""

    structure: Any  # None: it was not saved from Python, and is a dict of names
    plain: dict[str, str]  # JSON, by name

    @staticmethod
    def of(objects: dict[str, str]) -> Saved:
        structure = None
        plain = {name: text for name, text in objects.items() if not name.startswith(STRUCTURE)}
        for name, text in objects.items():
            if name.startswith(STRUCTURE):
                structure = _joined(structure, json.loads(text), "", plain)
        return Saved(structure, plain)

    def leaves(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every tensor and plain value, by the name of its place."""

        def walk(node: Any, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
            ((kind, content), *_) = node.items()
            if kind in ("tensor", "plain"):
                yield name, node
                return
            pairs = content if kind in _plain.MAPPINGS.values() else enumerate(content)
            for key, each in pairs:
                yield from walk(each, _below(name, key))

        return walk(self.structure, "") if self.structure else iter(())

    def build(self, tensors: dict[str, Any]) -> Any:
        """The state again, of tensors by name."""

        def make(node: Any, name: str) -> Any:
            if "tensor" in node:
                loaded = tensors[node.get("name", name)]
                return loaded[()] if node["tensor"] == "scalar" else loaded
            if "plain" in node:
                return _plain.from_json(self.plain[name])
            ((kind, content),) = node.items()
            if kind in ("list", "tuple"):
                made = [make(each, _below(name, at)) for at, each in enumerate(content)]
                return made if kind == "list" else tuple(made)
            pairs = [(key, make(each, _below(name, key))) for key, each in content]
            return OrderedDict(pairs) if kind == "ordered_dict" else dict(pairs)

        return make(self.structure, "") if self.structure else dict(tensors)


def _joined(one: Any, other: Any, name: str, plain: dict[str, str]) -> Any:
    """Structures of two ranks, at a place: what either has; of plain values, that of who has tensors there."""
    if one is None or other is None or one == other:
        return one or other
    if "plain" in one or "plain" in other:
        rest = other if "plain" in one else one
        one, other = _taken_apart(name, plain), rest
        if one is None:
            return rest
    ((kind, mine), *_) = one.items()
    ((other_kind, theirs), *_) = other.items()
    if kind != other_kind:
        raise Error("CONFLICT", f'ranks saved "{name}" as {kind} and as {other_kind}, which cannot be put together; give it '
                                "the same type on all ranks")
    if kind == "tensor":
        return other if "name" in one else one  # where it is not tied it has a name of its own
    if kind in _plain.MAPPINGS.values():
        here, there = dict(mine), dict(theirs)
        return {kind: [[key, _joined(here.get(key), there.get(key), _below(name, key), plain)] for key in {**here, **there}]}
    pairs = enumerate(itertools.zip_longest(mine, theirs))
    return {kind: [_joined(left, right, _below(name, at), plain) for at, (left, right) in pairs]}


def _taken_apart(name: str, plain: dict[str, str]) -> Any:
    """The structure of a plain value where another rank has tensors: None stands for nothing, a container for its parts."""
    value = _plain.from_json(plain[name])
    if value is None:
        return None
    if type(value) not in _plain.CONTAINERS:
        return {type(value).__name__: True}
    for key, each in _children(value):
        plain.setdefault(_below(name, key), _plain.to_json(each, name))
    if type(value) in _plain.MAPPINGS:
        return {_plain.MAPPINGS[type(value)]: [[key, {"plain": True}] for key in value]}
    return {type(value).__name__: [{"plain": True}] * len(value)}


def put_into(state: Any, plain: dict[str, Any]) -> Any:
    """Puts plain values by name where they belong in a state that is there; tuples are made anew."""

    def put(value: Any, name: str) -> Any:
        if name in plain:
            return plain[name]
        kind = type(value)
        if kind is tuple:
            return tuple(put(each, _below(name, at)) for at, each in enumerate(value))
        if kind in _plain.CONTAINERS:
            for key, each in list(_children(value)):
                value[key] = put(each, _below(name, key))
        return value

    return put(state, "")
