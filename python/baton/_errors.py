"""What is raised when something goes wrong."""
from __future__ import annotations


class Error(RuntimeError):
    """A refusal, or a failure of the world around.

    `code` is one of the stable words of baton (docs/python.md has them): match on it, not on the message.
    """

    def __init__(self, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(code, message, retry_after)
        self.code = code
        self.message = message
        self.retry_after = retry_after  # seconds after which another try is worth it, if that is known

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
