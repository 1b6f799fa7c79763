"""A ledger, its head and its stored answers are plain files of one name; links of their folders are followed once."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.answers.stored.store.locks import alone
from dpsql.answers.stored.store.sqlite import SqliteAnswers
from dpsql.core.ledger import sqlite_file as files
from dpsql.core.ledger.chain.head import Head
from dpsql.core.ledger.files.plain_files import located, oddity
from dpsql.core.ledger.ledger import Caps, Entry
from dpsql.core.ledger.sqlite import SqliteLedger, accept_head
from dpsql.diagnostics.errors import CannotOpen
from tests.core.ledger.conftest import Place

Charge = Callable[[object], Entry]
NO_FILES = "symbolic link|hard link|a pipe or a device"


def to_link(path: Path) -> None:
    """Move what is there, if anything, and leave a link to its new place."""
    target = path.with_name("elsewhere")
    if path.exists():
        path.rename(target)
    path.symlink_to(target)


def to_second_name(path: Path) -> None:
    path.touch()
    os.link(path, path.with_name("second"))


def to_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


ODD = pytest.mark.parametrize("odd", [to_link, to_second_name, to_pipe])


def entries(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT count(*) FROM entries").fetchone()[0]
    connection.close()
    return int(found)


@ODD
@pytest.mark.parametrize("charged", [False, True])
@pytest.mark.parametrize("opened", [Place.open, lambda place: SqliteLedger.look(place.path, place.head, "c", "zcdp")])
def test_what_is_no_plain_file_is_no_ledger(
    place: Place, charge: Charge, odd: Callable[[Path], None], charged: bool, opened: Callable[[Place], SqliteLedger]
) -> None:
    if charged:
        with place.open() as ledger:
            ledger.reserve(charge(1), Caps())
    odd(place.path)
    with pytest.raises(CannotOpen, match=NO_FILES) as refusal:
        opened(place)
    assert "name the file itself" in str(refusal.value) and "nothing was spent" in str(refusal.value)
    elsewhere = place.path.with_name("elsewhere")
    assert elsewhere.exists() == (charged and odd is to_link)
    with pytest.raises(CannotOpen, match=NO_FILES):
        accept_head(place.path, place.head)
    assert place.head.exists() == charged


@ODD
@pytest.mark.parametrize("part", ["", ".lock", ".new"])
def test_nor_is_it_a_head(place: Place, charge: Charge, odd: Callable[[Path], None], part: str) -> None:
    with place.open() as ledger:
        ledger.reserve(charge(1), Caps())
        odd(place.head.with_name(place.head.name + part))
        with pytest.raises(CannotOpen, match=NO_FILES):
            ledger.reserve(charge(2), Caps())
    with pytest.raises(CannotOpen, match=NO_FILES):
        place.open()
    assert entries(place.path) == 1
    assert oddity(place.head.with_name(place.head.name + part)) is not None  # neither replaced nor removed
    with pytest.raises(CannotOpen, match=NO_FILES):
        accept_head(place.path, place.head)


@ODD
def test_nor_does_it_hold_answers(place: Place, odd: Callable[[Path], None]) -> None:
    odd(place.path)
    with pytest.raises(CannotOpen, match=NO_FILES):
        SqliteAnswers(place.path)


def test_names_are_held_in_a_folder_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that leads nowhere is there, and is no folder: making it again and again would never end."""
    (tmp_path / "running").symlink_to(tmp_path / "nowhere")
    tried = 0

    def mkdir(path: Path, mode: int = 0o777, exist_ok: bool = False) -> None:
        nonlocal tried
        tried += 1
        assert tried < 3, "it is made for ever"
        raise FileExistsError(17, "File exists", str(path))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(CannotOpen, match="this is not a directory"):
        alone(tmp_path / "running", ["a"], 10, lambda: None)


def test_folders_may_be_links(place: Place, charge: Charge, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(tmp_path)
    other = Place(tmp_path / "linked" / place.path.name, tmp_path / "linked" / "state" / place.head.name)
    for number, named in enumerate((place, other, place)):
        with named.open() as ledger:
            assert ledger.path == place.path and len(ledger.history()) == number
            ledger.reserve(charge(number), Caps())
            assert len(ledger.history()) == number + 1
    with other.open() as ledger:
        (tmp_path / "linked").unlink()  # it is where it was when it was opened
        (tmp_path / "linked").symlink_to(tmp_path / "nowhere")
        ledger.reserve(charge(3), Caps())
    assert entries(place.path) == 4 and not (tmp_path / "nowhere").exists()
    known = Head(place.head, 1).read()
    assert known is not None and known.sequence == 4


def test_a_link_that_comes_while_it_is_open_stops_it(place: Place, charge: Charge) -> None:
    with place.open() as ledger:
        ledger.reserve(charge(1), Caps())
        to_link(place.path)
        with pytest.raises(CannotOpen, match="replaced or removed"):
            ledger.reserve(charge(2), Caps())
    shutil.move(place.path.with_name("elsewhere"), place.path)
    with place.open() as ledger:
        assert len(ledger.history()) == 1


def test_a_link_that_comes_just_before_sqlite_is_seen(
    place: Place, charge: Charge, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected = sqlite3.connect

    def late(path: object, *arguments: object, **options: object) -> sqlite3.Connection:
        to_link(place.path)
        return connected(path, *arguments, **options)  # type: ignore[call-overload, no-any-return]

    with place.open() as ledger:
        ledger.reserve(charge(1), Caps())
    monkeypatch.setattr(files.sqlite3, "connect", late)
    with pytest.raises(CannotOpen, match="a symbolic link took its place"):
        place.open()
    monkeypatch.undo()
    assert entries(place.path.with_name("elsewhere")) == 1


def test_a_name_that_is_none(tmp_path: Path) -> None:
    """What stands at no path, or at a path that is none, is not odd: opening it says what is wrong."""
    assert oddity(tmp_path / "nothing") is None and oddity("a\0b") is None
    with pytest.raises(ValueError):
        located("a\0b/c")
    with pytest.raises(CannotOpen, match="not a file name"):
        SqliteLedger.open("a\0b/c", tmp_path / "head", "c", "zcdp")
    with pytest.raises(CannotOpen, match="not a file name"):
        Head(Path("a\0b/c"), 1)
