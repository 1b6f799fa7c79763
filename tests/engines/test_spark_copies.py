"""What is read of the folders of prepared tables on a cluster, by a client that is made up: no cluster is needed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from dpsql.core.policy.source import SourceCall
from dpsql.diagnostics.errors import CannotOpen
from dpsql.engines.spark.folders import folder_of, last_of, line_of, look_of
from dpsql.engines.spark.relations import Copy, Schema, Wanted, load, pin
from dpsql.policy.load import parse_policy
from dpsql.service.preparing.manifest import declared

FIELDS = [{"name": "x", "type": "integer", "nullable": True}, {"name": "y", "type": "long", "nullable": True}]


class NotThere(Exception):
    def getCondition(self) -> str:
        return "PATH_NOT_FOUND"


@dataclass
class Rows:
    """Of some files; `items` of them are selected."""

    session: Session
    files: list[str]
    items: tuple[str, ...] = ()

    def inputFiles(self) -> list[str]:
        return self.files

    @property
    def schema(self) -> Any:
        return self

    def jsonValue(self) -> dict[str, Any]:
        return {"fields": FIELDS}

    def select(self, *items: str) -> Rows:
        return self

    def selectExpr(self, *items: str) -> Rows:
        return replace(self, items=items)

    def createOrReplaceTempView(self, name: str) -> None:
        self.session.views[f"`system`.`session`.`{name}`"] = self

    def toArrow(self) -> pa.Table:
        looks = [self.session.store[file] for file in self.files]
        return pa.table({
            "path": self.files, "length": [a for a, _ in looks],
            "modificationTime": pa.array([b for _, b in looks], pa.timestamp("us")),
        })  # fmt: skip


@dataclass
class Session:
    """A store of files, each with a size and a time, and views."""

    store: dict[str, tuple[int, int]]
    views: dict[str, Rows] = field(default_factory=dict)
    session_id = "s"

    @property
    def read(self) -> Session:
        return self

    def option(self, name: str, value: str) -> Session:
        return self

    def format(self, name: str) -> Session:
        return self

    def table(self, name: str) -> Rows:
        return self.views[name]

    def parquet(self, folder: str) -> Rows:
        return Rows(self, [file for file in self.store if file.startswith(f"{folder}/")])

    def load(self, paths: str | list[str]) -> Rows:
        wanted = [paths] if isinstance(paths, str) else paths
        if any(path not in self.store for path in wanted):
            raise NotThere
        return Rows(self, wanted)


FILES = {"s3a://b/t/1.parquet": (10, 5), "s3a://b/t/2.parquet": (20, 6)}


def opened(session: Session, copy: Copy) -> Schema:
    schema = load(session, [Wanted("t", source=SourceCall("read_parquet", ("s3a://b/t",)), copy=copy)])
    pin(session, schema, None)
    return schema


def test_the_files_that_were_prepared_are_read() -> None:
    session = Session(dict(FILES))
    opened(session, Copy(look_of(list(FILES), FILES)))
    ((name, view),) = session.views.items()
    assert name == "`system`.`session`.`dpsql_0_t`" and view.items == ("`x` AS `x`", "`y` AS `y`")


@pytest.mark.parametrize(
    "now",
    [
        {**FILES, "s3a://b/t/3.parquet": (1, 1)}, {"s3a://b/t/1.parquet": (10, 5)},
        {**FILES, "s3a://b/t/1.parquet": (11, 5)}, {**FILES, "s3a://b/t/1.parquet": (10, 6)},
        {"s3a://b/t/1.parquet": (10, 5), "s3a://b/t/3.parquet": (20, 6)}, {},
    ],
)  # fmt: skip
def test_other_files_are_not_read(now: dict[str, tuple[int, int]]) -> None:
    copy = Copy(look_of(list(FILES), FILES))
    with pytest.raises(CannotOpen, match="not those that were prepared"):
        opened(Session(now), copy)
    session = Session(dict(FILES))
    schema = opened(session, copy)
    session.store = now
    with pytest.raises(CannotOpen, match="not those that were prepared"):
        pin(session, schema, None)


def test_an_integer_beyond_its_ends_is_null() -> None:
    session = Session(dict(FILES))
    opened(session, Copy(look_of(list(FILES), FILES), (("x", -3, 9),)))
    (view,) = session.views.values()
    assert view.items == ("CASE WHEN `x` BETWEEN -3 AND 9 THEN `x` END AS `x`", "`y` AS `y`")


def test_the_last_manifest_that_is_whole_is_believed() -> None:
    assert last_of([]) == (0, None)
    lines = [line_of(2, '{"a": 1}'), line_of(10, '{"b": 2}'), line_of(3, "")]
    assert last_of(lines) == (10, '{"b": 2}')
    torn = [line_of(11, '{"c": 3}')[:-1], line_of(12, "{}").replace("12", "13 "), "", "14", line_of(15, "{}")[3:]]
    assert last_of([*torn, *lines]) == (10, '{"b": 2}')
    assert last_of([line_of(12, '{"c": 3}').replace("3", "4")]) == (0, None)


def test_tables_that_are_spelled_alike_have_two_folders() -> None:
    names = ["a.b", "a_b", "A.b", "Ä", "x" * 300, "x" * 301, "../a", "a=b", "*"]
    folders = [folder_of("s3a://b", name) for name in names]
    assert len(set(folders)) == len(names)
    assert all(folder.startswith("s3a://b/t_") and len(folder) < 70 for folder in folders)
    assert not any(sign in folder[8:].replace("/t_", "") for folder in folders for sign in "/=*.")


SHOP = """
version: 1
name: shop
database: sc://h
prepared_at: /x
tables:
  orders: {source: SOURCE, unit: {column: id}, max_rows_per_unit: 2, prepared: true, columns: {id: {type: bigint}}}
budgets: {total: {epsilon: 1}}
"""


def test_a_copy_of_another_table_of_the_catalogue_is_stale() -> None:
    sources = ("a.b.c", "a.b.d", "\"read_parquet('/y')\"")
    assert len({declared(parse_policy(SHOP.replace("SOURCE", s), "shop.yaml")) for s in sources}) == 3
