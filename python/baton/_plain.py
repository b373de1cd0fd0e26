"""What is no tensor, as JSON that gives back the same values and types.

None, booleans, strings and small integers are themselves, and a list is an array. The rest says what it is:
{"float": "0.1"}, {"int": "1180591620717411303424"}, {"tuple": [...]}, {"dict": [[key, value], ...]}. Floats are text,
because not every reader of JSON gives back each bit of a number.
"""
from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

_EXACT = 2**53  # integers up to here are the same in every reader of JSON
CONTAINERS = (dict, OrderedDict, list, tuple)
MAPPINGS: dict[type, str] = {dict: "dict", OrderedDict: "ordered_dict"}
_MADE_OF = {"dict": dict, "ordered_dict": OrderedDict, "tuple": tuple}


def _name_of(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def refusal(where: str, value: Any) -> TypeError:
    return TypeError(
        f'"{where}" is of type {_name_of(type(value))}, which a checkpoint cannot hold; it holds tensors, numpy arrays, '
        "None, bool, int, float, str, and dicts (with keys of str or int), lists and tuples of those"
    )


def _is_text(value: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def check_key(where: str, key: Any) -> None:
    place = f' of "{where}"' if where else ""
    if type(key) not in (str, int):
        raise TypeError(f"the key {key!r}{place} is a {_name_of(type(key))}; a key is a str or an int")
    if type(key) is str and not _is_text(key):
        raise TypeError(f"the key {key!r}{place} has a lone surrogate, which is no text")


def encoded(value: Any, where: str) -> Any:
    """As values that json.dumps takes; `where` is named if that cannot be."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        if not _is_text(value):
            raise TypeError(f'"{where}" is a str with a lone surrogate, which is no text')
        return value
    if kind is int:
        return value if -_EXACT <= value <= _EXACT else {"int": str(value)}
    if kind is float:
        return {"float": repr(value)}
    if kind is list:
        return [encoded(each, f"{where}/{at}") for at, each in enumerate(value)]
    if kind is tuple:
        return {"tuple": [encoded(each, f"{where}/{at}") for at, each in enumerate(value)]}
    if kind in MAPPINGS:
        for key in value:
            check_key(where, key)
        return {MAPPINGS[kind]: [[key, encoded(each, f"{where}/{key}")] for key, each in value.items()]}
    raise refusal(where, value)


def decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [decoded(each) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "float":
        return float(content)
    if kind == "int":
        return int(content)
    if kind == "tuple":
        return tuple(decoded(each) for each in content)
    return _MADE_OF[kind]((key, decoded(each)) for key, each in content)


def to_json(value: Any, where: str) -> str:
    return json.dumps(encoded(value, where), ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Any:
    return decoded(json.loads(text))
