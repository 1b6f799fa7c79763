"""How a CSV file is written, said in options: with them the same rows come out, and nothing is guessed."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dpsql.core.policy.source import SourceCall, parse_source
from dpsql.engines.duckdb.files.csv_form import csv_options

GERMAN = "Nr;Straße;Umsatz;Datum\n1;Weg 1;1,50;31.12.2023\n2;Weg 2;20,25;01.02.2024\n"
DAY, NEXT = dt.date(2023, 12, 31), dt.date(2024, 2, 1)


@pytest.mark.parametrize(
    ("content", "said", "rows"),
    [
        (GERMAN.encode("latin-1"), {"encoding": "latin-1", "decimal_separator": ","}, (1, "Weg 1", 1.5, DAY)),
        (GERMAN.encode(), {"dateformat": "%d.%m.%Y", "decimal_separator": ","}, (1, "Weg 1", 1.5, DAY)),
        (b"a;b\n1.234,50;x\n7,1;y\n", {"decimal_separator": ",", "thousands": "."}, (1234.5, "x")),
        (
            b"wann;wer;tag\n31.12.2023 13:05;x;1.2.2024\n01.02.2024 08:00;;1.3.2024\n",
            {"timestampformat": "%d.%m.%Y %H:%M", "dateformat": "%d.%m.%Y"},
            (dt.datetime(2023, 12, 31, 13, 5), "x", NEXT),
        ),
        (
            b"wann,tag\n31.12.2023 13:05:07,2024-02-01\n",
            {"timestampformat": "%d.%m.%Y %H:%M:%S"},
            (dt.datetime(2023, 12, 31, 13, 5, 7), NEXT),
        ),
        (b"a;b;c\n1,5;1.5;x\n2,5;2.5;x\n", {"decimal_separator": None}, ("1,5", 1.5, "x")),  # which of them it is
        (b'a,b\r\n1,"x, y"\r\n2,z\r\n', {"delim": ",", "decimal_separator": None, "quote": None}, (1, "x, y")),
        ("id;v\n1;ä\n2;ö\n".encode("utf-16"), {"encoding": "utf-16"}, (1, "ä")),
        (b"a\tb\n1\t2\n", {"delim": "\t"}, (1, 2)),
        (b"a|b\n1|2024-01-02 03:04:05\n", {"delim": "|"}, (1, dt.datetime(2024, 1, 2, 3, 4, 5))),
    ],
)
def test_what_is_said_reads_the_rows(tmp_path: Path, content: bytes, said: dict[str, Any], rows: tuple[Any]) -> None:
    path = tmp_path / "it's.csv"
    path.write_bytes(content)
    options = csv_options(str(path))
    call = SourceCall("read_csv", (str(path),), options)
    assert call.tells_schema and parse_source(str(call)) == call
    assert {name: dict(options).get(name) for name in said} == said
    with duckdb.connect() as con:
        assert con.execute(f"SELECT * FROM {call.sql()} LIMIT 1").fetchall() == [rows]


def test_of_what_is_no_csv_nothing_is_said(tmp_path: Path) -> None:
    assert csv_options(str(tmp_path / "none.csv")) == ()
    (tmp_path / "d.csv").mkdir()
    assert csv_options(str(tmp_path / "d.csv")) == ()
