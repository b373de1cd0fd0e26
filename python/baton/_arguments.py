"""What is asked for, looked at before it is handed on: so that a mistake is told in the words of whoever made it."""
from __future__ import annotations

import operator
from typing import Any, Iterable, Mapping


def _number(what: str, value: Any, bits: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is an int, not {value!r}") from None
    if not 0 <= number < 2**bits:
        raise ValueError(f"{what} is an int from 0 to 2**{bits} - 1, not {number}")
    return number


def step(value: Any) -> int:
    return _number("a step", value, 63)


def staging_bytes(value: Any) -> int:
    return _number("staging_bytes", value, 63)


def name(value: Any) -> str:
    """Of a checkpoint: its name, or its step."""
    if isinstance(value, str):
        return value
    try:
        return str(operator.index(value))
    except TypeError:
        raise TypeError(f"a checkpoint is named by a str, or by its step, an int, not {value!r}") from None


def rank(value: Any) -> int:
    return _number("a rank", value, 32)


def world_size(value: Any) -> int:
    return _number("a world size", value, 32)


def place(what: str, values: Iterable[Any]) -> tuple[int, ...]:
    """A number for each dimension of a tensor."""
    return tuple(_number(f"each of {what}", value, 63) for value in values)


def seconds(value: Any) -> float:
    try:
        if isinstance(value, (str, bytes)):  # which float would read
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"a deadline is a number of seconds, not {value!r}") from None


def texts(value: Mapping[str, str] | None) -> dict[str, str]:
    """What a caller wants kept with a checkpoint."""
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"custom is a dict of texts, not {value!r}")
    return dict(value or {})
