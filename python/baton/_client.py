"""The client of tasks."""
from __future__ import annotations

from typing import Any, Sequence, Union

from . import _baton, _open
from ._connection import connection
from ._errors import Error

Content = Union[bytes, str]


def _bytes(content: Content) -> bytes:
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    raise TypeError(f"a payload, result or reason is bytes or a str, and not {type(content).__name__}")


class Client:
    """A client of a coordinator, for any number of threads. It connects when there is something to say.

    Payloads, results and reasons are bytes; a str is its UTF-8. Times are seconds. Every call ends by its `deadline` and
    raises Error, whose code says what happened: UNAVAILABLE and DEADLINE_EXCEEDED nothing, OUTCOME_UNKNOWN perhaps
    something.
    """

    closes_at = 2

    def __init__(self, address: str | Sequence[str] | None = None, *, user: str | None = None,
                 token: str | None = None, namespace: str | None = None, tls: bool = False, ca: str | None = None,
                 certificate: str | None = None, key: str | None = None, deadline: float = 30.0) -> None:
        """`address` is HOST:PORT, several of them to be tried in turn, or what BATON_CONNECT says.

        `ca`, `certificate` and `key` name files in PEM and mean TLS, as `tls` does.
        """
        self._calls: _baton.Calls | None = _baton.Calls(
            connection(address, user=user, token=token, namespace=namespace, tls=tls, ca=ca, certificate=certificate,
                       key=key, deadline=deadline))
        _open.until_exit(self)

    def submit(self, queue: str, payload: Content, *, key: str = "", deadline: float = 0,
               **options: Any) -> _baton.Submitted:
        """Hands in a task. With a key it is safe to repeat: the same key and content is the same task.

        Options: priority, delay, capabilities, max_failures, backoff, backoff_max, max_attempts, max_hold.
        """
        return self._open().submit(queue, _bytes(payload), key, _known(options), deadline)

    def submit_many(self, queue: str, payloads: Sequence[Content], *, keys: Sequence[str] = (), deadline: float = 0,
                    **options: Any) -> list[_baton.Submitted | Error]:
        """Up to 1024 tasks at once. One that is refused is an Error in the list and takes nothing from the others."""
        return self._open().submit_many(queue, [_bytes(each) for each in payloads], list(keys), _known(options), deadline)

    def lease(self, worker: str, queues: str | Sequence[str], *, count: int = 1, ttl: float = 30.0, wait: float = 0,
              capabilities: Sequence[str] = (), deadline: float = 0) -> list[_baton.Leased]:
        """Takes up to `count` tasks for `ttl` seconds; if there is none, waits up to `wait` seconds for one."""
        named = [queues] if isinstance(queues, str) else list(queues)
        return self._open().lease(worker, named, count, ttl, wait, list(capabilities), deadline)

    def extend(self, leased: _baton.Leased, ttl: float, deadline: float = 0) -> float:
        """For how long it is held from now."""
        return self._open().extend(_held(leased), ttl, deadline)

    def complete(self, leased: _baton.Leased, result: Content = b"", deadline: float = 0) -> _baton.Verdict:
        return self._open().complete(_held(leased), _bytes(result), deadline)

    def fail(self, leased: _baton.Leased, reason: Content, *, final: bool = False, delay: float = 0,
             deadline: float = 0) -> _baton.Verdict:
        """It is tried again as its policy says, or after `delay` seconds; not if `final`."""
        return self._open().fail(_held(leased), _bytes(reason), final, delay, deadline)

    def release(self, leased: _baton.Leased, deadline: float = 0) -> _baton.Verdict:
        """Gives it back, as if it had not been taken."""
        return self._open().release(_held(leased), deadline)

    def cancel(self, task: str, deadline: float = 0) -> None:
        self._open().cancel(task, deadline)

    def get(self, task: str, deadline: float = 0) -> _baton.Task:
        """By its id, or by "key:" and its key."""
        return self._open().get(task, deadline)

    def wait(self, task: str, wait: float, deadline: float = 0) -> _baton.Task:
        """For its end, up to `wait` seconds; as it is then."""
        return self._open().wait(task, wait, deadline)

    def close(self) -> None:
        self._calls = None
        _open.forget(self)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> _baton.Calls:
        if self._calls is None:
            raise Error("CLOSED", "this client was closed")
        return self._calls


def _held(leased: _baton.Leased) -> _baton.Held:
    return _baton.Held(leased.task, leased.lease)


_OPTIONS = {"priority", "delay", "capabilities", "max_failures", "backoff", "backoff_max", "max_attempts", "max_hold"}


def _known(options: dict[str, Any]) -> dict[str, Any]:
    if unknown := options.keys() - _OPTIONS:
        raise TypeError(f"a task has no option {', '.join(sorted(unknown))}; it has {', '.join(sorted(_OPTIONS))}")
    return options
