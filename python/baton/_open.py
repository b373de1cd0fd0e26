"""What is open when the interpreter ends is closed then, while threads still run and errors can still be told."""
from __future__ import annotations

import atexit
import sys
import weakref
from typing import Any

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


atexit.register(_close_all)
