"""What is asked for, looked at before it is handed on: so that a mistake is told in the words of whoever made it."""
from __future__ import annotations

import operator
from typing import Any

_STEP_MAX = 2**63 - 1


def step(value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"a step is an int, not {value!r}") from None
    if not 0 <= number <= _STEP_MAX:
        raise ValueError(f"a step is an int from 0 to 2**63 - 1, not {number}")
    return number


def seconds(value: Any) -> float:
    try:
        if isinstance(value, (str, bytes)):  # which float would read
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"a deadline is a number of seconds, not {value!r}") from None
