"""Names that one thread of one process holds at a time: a locked file for each, which the system lets go by itself.

*Claim.* Of all who ask for a name, one holds it; when its process ends, however it ends, the next one does. *Why.* The
operating system ties `flock` to the open file, each call opens its own, and the kernel closes the files of dead
processes. A file is removed by its holder before it is let go, so whoever then gets the lock looks whether the file
still has its name, and opens a new one if not. Names are taken in order, so nobody waits for somebody who waits for
him. *When it would be false.* On file systems without `flock` (some network ones), and on Windows, where nothing is
locked: the same query asked twice at one time is then paid for twice, which is what it cost. *Tested by*
tests/answers/stored/test_store_contract.py, tests/deep/answers/stored/test_processes.py.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path

from dpsql.answers.stored.store.refusals import DISK, kept_waiting, unusable
from dpsql.answers.stored.store.store import Result
from dpsql.core.ledger.files.plain_files import NOFOLLOW

if sys.platform != "win32":
    import fcntl

_SHORTEST, _LONGEST = 0.002, 0.05
"""Seconds between two attempts, growing: most queries take milliseconds, some take minutes. Ctrl-C is heard between."""


def alone(directory: Path, names: Collection[str], patience: float, action: Callable[[], Result]) -> Result:
    """Act while holding all these names (texts that can be file names) in `directory`, made if it is missing.

    Raises CannotOpen (DP407): not free for `patience` seconds, or no file can be made.
    """
    if sys.platform == "win32":
        return action()
    taken: list[tuple[Path, int]] = []
    deadline = time.monotonic() + patience
    try:
        for name in sorted(set(names)):
            path = directory / name
            while (descriptor := _locked(path, deadline, patience)) is None:
                pass  # its holder removed the file meanwhile
            taken.append((path, descriptor))
        return action()
    finally:
        late: BaseException | None = None
        while taken:
            # A Ctrl-C in here must not leave a name held for as long as the process lives.
            try:
                while taken:
                    path, descriptor = taken[-1]
                    _vacate(path, descriptor)
                    del taken[-1]  # nothing is heard between these two lines, so no descriptor is closed twice
                    os.close(descriptor)
            except BaseException as error:
                late = error
        with contextlib.suppress(OSError):
            directory.rmdir()  # only if nobody holds a name in it
        if late is not None:
            raise late


def _vacate(path: Path, descriptor: int) -> None:
    """Remove a file that is held, unless that was done before, and its lock.

    Closing alone does not unlock for those who wait with the file open: a child forked meanwhile has it open, too.
    """
    with contextlib.suppress(OSError):
        if _same_file(path, descriptor):
            path.unlink()
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _locked(path: Path, deadline: float, patience: float) -> int | None:
    """The descriptor of the locked file; None if it was removed before it could be locked."""
    descriptor = _opened(path)
    try:
        pause = _SHORTEST
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise kept_waiting(path.parent, patience) from None
            except OSError:
                break  # this file system knows no locks
            time.sleep(pause)
            pause = min(_LONGEST, pause * 1.5)
        if _same_file(path, descriptor):
            return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _opened(path: Path) -> int:
    while True:
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | NOFOLLOW, 0o600)
        except FileNotFoundError:
            if not path.parent.parent.is_dir():
                raise unusable(path.parent, "its directory is missing", DISK) from None
            # Somebody removed the empty directory between the two lines.
        except FileExistsError:
            # A file, a pipe, a link that leads nowhere; or somebody removed it just after mkdir had found it there.
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISDIR(os.lstat(path.parent).st_mode):
                    raise unusable(path.parent, "this is not a directory", DISK) from None
        except OSError as error:
            raise unusable(path.parent, f"it cannot be written ({error.strerror})", DISK) from None


def _same_file(path: Path, descriptor: int) -> bool:
    try:
        named, ours = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)
