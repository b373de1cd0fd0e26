"""What is open when the interpreter ends is closed then, while threads still run and errors can still be told."""
from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Any

from . import _baton

_things: weakref.WeakSet[Any] = weakref.WeakSet()


def until_exit(thing: Any) -> None:
    _things.add(thing)


def forget(thing: Any) -> None:
    _things.discard(thing)


def _close_all() -> None:
    # Stores before the groups they save with, and groups before anything else.
    for thing in sorted(_things, key=lambda each: getattr(each, "closes_at", 0)):
        try:
            thing.close()
        except Exception as error:  # the others are closed all the same
            print(f"baton: at exit: {error}", file=sys.stderr)


def _leave_to_parent() -> None:
    """In a child that was forked: the threads behind what is open are its parent's, and none would ever close it here."""
    for thing in _things:
        for part in ("_store", "_seat", "_calls"):
            if getattr(thing, part, None) is not None:
                _baton.never_let_go(getattr(thing, part))
                setattr(thing, part, None)
    _things.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_leave_to_parent)
