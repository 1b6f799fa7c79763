"""Tells whoever started a process that it is ready: systemd, for units with `Type=notify` (sd_notify(3))."""

from __future__ import annotations

import os
import socket


def tell_ready() -> None:
    """Say so at the socket that `NOTIFY_SOCKET` names; nothing where it is not set, as outside of systemd.

    Raises OSError.
    """
    where = os.environ.get("NOTIFY_SOCKET")
    if where:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.sendto(b"READY=1", f"\0{where[1:]}" if where[0] == "@" else where)
