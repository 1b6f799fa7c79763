"""Private folders for what does not fit into memory: made for one engine, removed with it or swept up.

*Claim.* Only this user can read such a folder; none outlives its engine, but for a kill or a power cut, and then it is
removed when this user next opens data on the same machine; a folder in use is never touched. *Why.* `mkdtemp` makes it
with mode 0700. Its maker holds a lock (`flock`) on it for as long as the process lives, however that ends. Who sweeps
takes only folders with our name, owned by this user and closed to others, that can be locked; inside, only files named
as DuckDB names what it spills, and then the folder if nothing else is left. A maker that was overtaken between making
and locking sees that its folder is gone, and makes another. *When it would be false.* On Windows and on file systems
without `flock` nothing is swept; on a network file system that keeps locks to each machine, the folder of another
machine's process could be taken for a dead one's, whose query then fails. *Tested by* tests/engines/test_spill.py,
tests/deep/faces/cli/shell/test_long_work.py.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass
from typing import Final

from dpsql.core.engine import cannot_open

if sys.platform != "win32":
    import fcntl

PREFIX: Final = "dpsql-spill-"
_SPILLED: Final = "duckdb_temp_"
"""What the names of DuckDB's temporary files begin with."""


@dataclass(frozen=True, slots=True)
class SpillFolder:
    """A folder that exists until `remove`. descriptors: until then the one that holds its lock, if there are locks."""

    path: str
    descriptors: list[int]
    process: int

    @classmethod
    def make(cls) -> SpillFolder:
        """A new one in the temporary directory, after those of dead processes have been removed there.

        Raises OSError if none can be made.
        """
        sweep(tempfile.gettempdir())
        while True:
            path = tempfile.mkdtemp(prefix=PREFIX)
            if sys.platform == "win32":
                return cls(path, [], os.getpid())
            try:
                descriptor = _locked(path)
            except (FileNotFoundError, BlockingIOError):
                continue  # swept up between the two lines, or about to be
            except BaseException:
                shutil.rmtree(path, ignore_errors=True)
                raise
            return cls(path, [] if descriptor is None else [descriptor], os.getpid())

    def remove(self) -> None:
        """Remove it with all that is in it; in a forked child only let go of it. May be called twice."""
        if self.process == os.getpid():
            shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(IndexError, OSError):
            os.close(self.descriptors.pop())  # closed twice, it would be another's by then


def spill_folder() -> SpillFolder:
    """A new folder, as `SpillFolder.make`. Raises CannotOpen (DP006) if none can be made."""
    with contextlib.suppress(OSError):
        return SpillFolder.make()
    raise cannot_open(
        "no private folder can be made for what does not fit into memory",
        "check the temporary directory (TMPDIR): that it can be written and has space",
    )


def sweep(directory: str) -> None:
    """Remove the spill folders of processes of this user that have ended without doing so. Never raises OSError."""
    if sys.platform == "win32":
        return
    try:
        with os.scandir(directory) as entries:
            found = [entry.path for entry in entries if entry.name.startswith(PREFIX)]
    except OSError:
        return
    for path in found:
        with contextlib.suppress(OSError):
            _remove_if_dead(path)


def _remove_if_dead(path: str) -> None:
    descriptor = _locked(path)
    if descriptor is None:
        return
    try:
        status = os.fstat(descriptor)
        if status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            # Names are looked up in the folder that is locked, whatever stands under its path by now.
            for name in os.listdir(descriptor):
                if name.startswith(_SPILLED):
                    os.unlink(name, dir_fd=descriptor)
            os.rmdir(path)
    finally:
        os.close(descriptor)


def _locked(path: str) -> int | None:
    """A descriptor that holds the lock of the folder `path`, which is no link; None where folders cannot be locked.

    Raises BlockingIOError if it is locked; FileNotFoundError if it is there no more; OSError if it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        os.close(descriptor)
        return None
    try:
        if not os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor)):
            raise FileNotFoundError(path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
