"""Workers for a front that another user runs: whoever may open a Unix socket gets one for each connection.

    python -m dpsql.faces.server.workers.host /run/dpsql/workers.sock /etc/dpsql/clinic.yaml

*Claim.* The front's user cannot read the data, and the data's user needs no network. *Why.* The front gets a socket and
no file; a worker gets the socket's other end as its input and output. *When it would be false.* If others than the
front's group may open the socket. *Tested by* tests/deep/faces/server/test_host.py.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final, NoReturn

from dpsql.diagnostics.errors import CannotOpen
from dpsql.faces.server.readiness import tell_ready
from dpsql.faces.server.workers.worker_link import command
from dpsql.policy.load import load_policy

_SPARE: Final = 2
"""Workers beyond those of the policy: of one that ends, and one that takes its place."""


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM. Workers that are at work then end when the front lets go of them."""
    parser = argparse.ArgumentParser(prog="dpsql-workers", description="Gives workers to the front of a server.")
    parser.add_argument("socket", type=Path, help="where the front connects; its group may open it")
    parser.add_argument("policy", type=Path)
    given = parser.parse_args(arguments)
    try:
        serving = load_policy(given.policy).serving
    except CannotOpen as error:
        print(error, file=sys.stderr)
        return 1
    words = command(given.policy.absolute(), serving)
    signal.signal(signal.SIGTERM, _ended)
    try:
        with _listening(given.socket) as listener:
            tell_ready()
            _serve(listener, words, serving.workers + 2 + _SPARE)
    except (KeyboardInterrupt, SystemExit):
        return 0
    finally:
        given.socket.unlink(missing_ok=True)


def _ended(*_: object) -> NoReturn:
    raise SystemExit


def _listening(path: Path) -> socket.socket:
    """A socket that its owner and its group may open; it gets its name when it listens, in place of an earlier one."""
    listener, making = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), path.with_name(f"{path.name}.new")
    making.unlink(missing_ok=True)
    before = os.umask(0o117)
    try:
        listener.bind(str(making))
    finally:
        os.umask(before)
    listener.listen(16)
    making.rename(path)
    return listener


def _serve(listener: socket.socket, words: list[str], most: int) -> NoReturn:
    alive: list[subprocess.Popen[bytes]] = []
    while True:
        connection, _ = listener.accept()
        with connection:
            alive = [process for process in alive if process.poll() is None]
            if len(alive) < most:
                own = connection.fileno()
                alive.append(subprocess.Popen(words, stdin=own, stdout=own, stderr=subprocess.DEVNULL))


if __name__ == "__main__":
    sys.exit(main())
