"""Looking at a ledger that cannot be written: what is spent is read, and nothing is made, changed or charged."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.errors import CannotOpen
from tests.core.ledger.conftest import Place

Charge = Callable[[object], Entry]
NOBODY = 65534

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs another user's process")


@pytest.fixture
def shelf(charge: Charge) -> Iterator[Place]:
    """A ledger of three entries in a folder that everybody may read and nobody may write."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # the folders of tmp_path are closed to other users
    found = Place(folder / "l.sqlite", folder / "head.json")
    try:
        with found.open() as ledger:
            for i in range(3):
                ledger.reserve(charge(i), Caps())
        close(folder)
        yield found
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


def close(folder: Path) -> None:
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)


def as_nobody(action: Callable[[], str]) -> str:
    """What an action says in a process that may not write what others own; of a refusal, its message."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        said = "failed"
        try:
            if os.getuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            try:
                said = action()
            except CannotOpen as refusal:
                said = f"{refusal.diagnostics[0].code} {refusal.diagnostics[0].message}"
        except BaseException as error:
            said = repr(error)
        finally:
            os.write(there, said.encode())
            os._exit(0)
    os.close(there)
    with os.fdopen(here, encoding="utf-8") as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said


def look(place: Place) -> SqliteLedger:
    return SqliteLedger.look(place.path, place.head, "clinic", "approx_dp", timeout=5)


def told(place: Place) -> str:
    with look(place) as ledger:
        return f"{ledger.spent('patient').epsilon} {len(ledger.history())} {ledger.verify()}"


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_what_is_spent_is_told_and_nothing_is_made(shelf: Place) -> None:
    before = contents(shelf.path.parent)
    assert as_nobody(lambda: told(shelf)) == "3/10 3 3"
    assert contents(shelf.path.parent) == before and not any("-" in name for name in before)
    assert as_nobody(lambda: str(shelf.open(timeout=5).spent("patient"))).startswith("DP407 ")  # the twin


def test_nothing_can_be_charged(shelf: Place, charge: Charge) -> None:
    def reserve() -> str:
        with look(shelf) as ledger:
            return str(ledger.reserve(charge("more"), Caps()))

    assert as_nobody(reserve).startswith("DP407 ")
    # Neither where the head could be written.
    shelf.path.parent.chmod(0o755)
    apart = Place(shelf.path, Path(tempfile.mkdtemp(dir="/tmp")) / "head.json")
    shutil.move(shelf.head, apart.head)
    apart.head.parent.chmod(0o777)
    apart.head.chmod(0o666)
    try:

        def reserve_apart() -> str:
            with look(apart) as ledger:
                return str(ledger.reserve(charge("more"), Caps()))

        close(shelf.path.parent)
        assert as_nobody(reserve_apart).startswith("DP407 ")
        assert as_nobody(lambda: told(apart)) == "3/10 3 3"
    finally:
        shutil.rmtree(apart.head.parent)


def test_a_writer_who_comes_meanwhile_is_noticed(shelf: Place, charge: Charge) -> None:
    """The log that he makes is not read, so the numbers would be old ones."""
    with SqliteLedger.look(shelf.path, shelf.head, "clinic", "approx_dp") if os.getuid() else _immutable(shelf) as seen:
        assert seen.spent("patient") == PrivacyLoss(Fraction(3, 10))
        shelf.path.parent.chmod(0o755)
        for file in shelf.path.parent.iterdir():
            file.chmod(0o644)
        with shelf.open() as ledger:
            ledger.reserve(charge("more"), Caps())
            with pytest.raises(CannotOpen, match="replaced or removed while in use"):
                seen.spent("patient")


def _immutable(place: Place) -> SqliteLedger:
    """As `look` gives it to who may not write; the superuser always may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpsql.core.ledger.sqlite.writable", lambda path: False)
        return look(place)


def test_an_older_copy_and_an_older_format_are_refused(shelf: Place) -> None:
    shelf.path.parent.chmod(0o755)
    data = Path(__file__).parent / "format1.sqlite.gz"
    shelf.path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    whole = shelf.path.read_bytes()
    shelf.path.write_bytes(gzip.decompress(data.read_bytes()))
    close(shelf.path.parent)
    said = as_nobody(lambda: told(shelf))
    assert said.startswith("DP407 ") and "it cannot be brought up to date here" in said
    shelf.path.parent.chmod(0o755)
    shelf.path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    shelf.path.write_bytes(whole)
    shelf.head.chmod(stat.S_IRUSR | stat.S_IWUSR)
    shelf.head.unlink()
    close(shelf.path.parent)
    said = as_nobody(lambda: told(shelf))
    assert said.startswith("DP407 ") and "the file that remembers its last entry is missing" in said
