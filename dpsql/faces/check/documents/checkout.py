"""What lies in a checkout, and what only seems to.

Whoever can push a branch chooses the names in its configuration and where its links lead, and sees what a check says of
it. So nothing is shown of a file that lies elsewhere, and no pipe is waited for. The checkout of a path is the nearest
folder with `.git` at or above the place where the path is written, whatever its links lead to.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.errors import CannotOpen, reject
from dpsql.planner.computed import understood
from dpsql.policy.load import load_policy
from dpsql.policy.tools.decisions import decided


def checkout_of(path: str | os.PathLike[str]) -> Path | None:
    """The folder of the checkout in which a path is written; None if it is in none."""
    whole = Path(os.path.abspath(path))
    return next((folder for folder in (whole, *whole.parents) if os.path.lexists(folder / ".git")), None)


def strays(path: str | os.PathLike[str], root: Path | None = None) -> bool:
    """Whether a path leads out of a checkout: of its own, or of `root`, whose configuration names it."""
    root = root or checkout_of(path)
    return root is not None and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether it is a pipe, a folder or a device; a link that leads nowhere is not: reading it says what is wrong."""
    return os.path.exists(path) and not os.path.isfile(path)


def require_inside(path: str) -> None:
    """Raises Rejected DP903 for a file that a link leads out of its checkout to."""
    if strays(path):
        raise reject(
            "DP903", f"{path!r} leads out of the checkout by a link, and is not read",
            help=["put the file itself there, or name the place where it is"],
        )  # fmt: skip


def require_own(path: str, root: Path, named: str) -> None:
    """Raises Rejected DP903 for what a configuration names outside of its checkout, and for a pipe or a device."""
    if strays(path, root) or (is_special(path) and not os.path.isdir(path)):
        raise reject(
            "DP903", f"the configuration names {named!r}, which lies outside of the checkout or is no file",
            help=["put it into the checkout, or name it on the command line"],
        )  # fmt: skip


def load_own(path: str, root: Path | None, *, draft: bool = False) -> Policy:
    """The policy. root: of the configuration that names it, if one does. draft: whether it may be one.

    Raises CannotOpen; of one outside of its checkout nothing is told but that it cannot be used.
    """

    def loaded() -> Policy:
        found = understood(load_policy(path))
        return found if draft else decided(found)

    outside = strays(path, root)
    if not outside and (root is None or not is_special(path)):
        return loaded()
    if os.path.isfile(path):
        with contextlib.suppress(CannotOpen):
            return loaded()
    where = "lies outside of the checkout, so nothing of it is shown" if outside else "is a folder, a pipe or a device"
    message = f"policy {path} is none, or cannot be read: it {where}"
    raise CannotOpen([Diagnostic("DP001", message, help=(f"look at it yourself:  dpsql policy check {path}",))])
