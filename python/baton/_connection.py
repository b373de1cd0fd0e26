"""How to reach a coordinator."""
from __future__ import annotations

import os
from typing import Any, Sequence


_NO = ("", "0", "no", "off", "false")


def connection(address: str | Sequence[str] | None, *, user: str | None = None, token: str | None = None,
               namespace: str | None = None, tls: bool = False, ca: str | None = None, certificate: str | None = None,
               key: str | None = None, deadline: float = 30.0) -> dict[str, Any]:
    """What is not said is as the environment has it, under the names that the `baton` command knows."""
    said = address if address is not None else os.environ.get("BATON_CONNECT", "127.0.0.1:7077")
    options: dict[str, Any] = {
        "addresses": said.split(",") if isinstance(said, str) else list(said),
        "user": user if user is not None else os.environ.get("BATON_USER"),
        "token": token if token is not None else os.environ.get("BATON_TOKEN"),
        "namespace": namespace if namespace is not None else os.environ.get("BATON_NAMESPACE"),
        "ca": ca if ca is not None else os.environ.get("BATON_TLS_CA"),
        "certificate": certificate,
        "key": key,
        "deadline": deadline,
    }
    if tls or options["ca"] or certificate or key or os.environ.get("BATON_TLS", "0").lower() not in _NO:
        options["tls"] = True
    return {name: value for name, value in options.items() if value is not None}
