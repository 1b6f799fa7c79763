"""Each client as one function: statements in, what a person at it would see out. What is missing is said by name.

Drivers of Python are in the environment of these tests, and those of Node beside them. psql, Java with JDBC's driver,
ODBC's and Node come with a system: where one is not there, its tests are expected to fail, and the end of the run
prints how to install it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.engines_elsewhere.conftest import REQUIRED

JAR = Path("/usr/share/java/postgresql.jar")
ODBC = "PostgreSQL Unicode"
NODE = Path(sys.prefix) / "node"
"""Where the environment has Node's packages (`environment.py`)."""
TOOLS = Path(sys.prefix).with_name("tools") / "bin" / "python"
"""That of the environment of tools: what they need would take the place of what dpsql needs."""
IN_TOOLS = "the environment of tools"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, and who connects."""

    port: int
    user: str
    password: str
    database: str

    def url(self, scheme: str = "postgresql", more: str = "") -> str:
        """As most drivers take it."""
        return f"{scheme}://{self.user}:{quote(self.password)}@127.0.0.1:{self.port}/{self.database}{more}"


@dataclass(slots=True)
class Seen:
    """What came of one statement. rows: as texts. said: notices. place: of the caret, from 1; None: not shown."""

    rows: Sequence[tuple[str, ...]] = ()
    said: str = ""
    refused: str = ""
    state: str = ""
    place: int | None = None


Talk = Callable[[Address, Sequence[str], Path], list[Seen]]


@dataclass(frozen=True, slots=True)
class Client:
    """talk: asks statements on one connection, or each on one. module: of PyPI's; package: Debian's; "" for none."""

    name: str
    talk: Talk
    module: str
    package: str = ""
    shows_state: bool = True
    shows_place: bool = True
    shows_notices: bool = True


def texts(rows: Any) -> list[tuple[str, ...]]:
    return [tuple("" if value is None else str(value) for value in row) for row in rows]


# --- programs ---------------------------------------------------------------------------------------------------------


def caret(said: str) -> int | None:
    """The place that `LINE 1: … ^` shows."""
    found = re.search(r"^LINE 1: .*\n( *)\^", said, re.MULTILINE)
    return None if found is None else len(found[1]) - len("LINE 1: ") + 1


def psql(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    """Each in a run of its own."""
    seen = []
    for sql in statements:
        done = subprocess.run(
            ["psql", "-X", "-A", "-t", "-v", "VERBOSITY=verbose", "-c", sql, address.url()], text=True,
            capture_output=True, timeout=600, env={**os.environ, "LC_ALL": "C.UTF-8", "PGCLIENTENCODING": "UTF8"},
        )  # fmt: skip
        refused = re.search(r"ERROR:  (\w{5}): (.*)", done.stderr)
        rows = [tuple(line.split("|")) for line in done.stdout.splitlines()]
        one = Seen(rows, done.stderr, "" if refused is None else refused[2], "" if refused is None else refused[1])
        one.place = caret(done.stderr)
        seen.append(one)
    return seen


def pgcli(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    """Each in a run of its own, with settings in a folder of its own. Its SQLSTATE is not shown."""
    program = Path(sys.executable).with_name("pgcli")
    homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME"), str(folder))
    seen = []
    for sql in statements:
        done = subprocess.run(
            [str(program), "--pgclirc", str(folder / "pgclirc"), "--less-chatty", "-c", sql, address.url()], text=True,
            capture_output=True, timeout=600, stdin=subprocess.DEVNULL,
            env={**os.environ, **homes, "LC_ALL": "C.UTF-8", "PAGER": "cat"},
        )  # fmt: skip
        said = done.stdout + done.stderr
        table = [line for line in said.splitlines() if line.startswith("| ")]
        rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table[1:]]
        refused = re.search(r"^\[DP\d+\] .*", said, re.MULTILINE)
        seen.append(Seen(rows, said, "" if refused is None else refused[0], place=caret(said)))
    return seen


# --- drivers of Python ------------------------------------------------------------------------------------------------


def psycopg(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    import psycopg as driver

    with driver.connect(address.url(), autocommit=True) as connection:
        told: list[str] = []
        connection.add_notice_handler(lambda d: told.append(str(d.message_primary)))

        def one(sql: str) -> Seen:
            try:
                return Seen(texts(connection.execute(sql).fetchall()))
            except driver.Error as e:
                return Seen((), "", str(e.diag.message_primary), e.sqlstate or "", _number(e.diag.statement_position))

        return [_with(one(sql), told) for sql in statements]


def psycopg2(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    import psycopg2 as driver

    connection = driver.connect(address.url())
    connection.autocommit = True
    cursor = connection.cursor()

    def one(sql: str) -> Seen:
        try:
            cursor.execute(sql)
            return Seen(texts(cursor.fetchall()))
        except driver.Error as e:
            return Seen((), "", str(e.diag.message_primary), e.pgcode or "", _number(e.diag.statement_position))

    seen = [_with(one(sql), connection.notices) for sql in statements]
    connection.close()
    return seen


def asyncpg(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    """A number behind `amount <` is given as a parameter, a whole one."""
    import asyncpg as driver

    async def talk() -> list[Seen]:
        connection = await driver.connect(address.url(), ssl=False)
        told: list[str] = []
        connection.add_log_listener(lambda _, message: told.append(str(message.message)))

        async def one(sql: str) -> Seen:
            numbers = [int(n) for n in re.findall(r"amount < (\d+)", sql)]
            sql = re.sub(r"amount < \d+", "amount < CAST($1 AS INTEGER)", sql)
            try:
                return Seen(texts(tuple(row) for row in await connection.fetch(sql, *numbers)))
            except driver.PostgresError as e:
                return Seen((), "", str(e), e.sqlstate, _number(e.position))

        seen = []
        for sql in statements:
            answer = await one(sql)
            await asyncio.sleep(0)  # listeners are told in a turn of their own
            seen.append(_with(answer, told))
        await connection.close()
        return seen

    return asyncio.run(talk())


def pg8000(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    import pg8000.dbapi as driver

    connection = driver.connect(
        address.user, host="127.0.0.1", port=address.port, password=address.password, database=address.database
    )
    connection.autocommit = True
    cursor = connection.cursor()

    def one(sql: str) -> Seen:
        try:
            cursor.execute(sql)
            return Seen(texts(cursor.fetchall()))
        except driver.DatabaseError as e:
            fields = e.args[0]
            return Seen((), "", fields["M"], fields["C"], _number(fields.get("P")))

    seen = []
    for sql in statements:
        told: list[str] = []
        answer = one(sql)
        told += [notice[b"M"].decode() for notice in connection.notices]
        connection.notices.clear()
        seen.append(_with(answer, told))
    connection.close()
    return seen


def _number(text: object) -> int | None:
    return None if text is None else int(str(text))


def _with(seen: Seen, told: list[str]) -> Seen:
    seen.said = "\n".join(told)
    told.clear()
    return seen


# --- frames -----------------------------------------------------------------------------------------------------------


def sqlalchemy(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    """The tables are reflected first, and asked for by name."""
    import sqlalchemy as sa

    engine = sa.create_engine(address.url("postgresql+psycopg"))
    tables = sa.MetaData()
    tables.reflect(engine)
    assert "orders" in tables.tables

    def one(connection: Any, sql: str) -> Seen:
        try:
            return Seen(texts(connection.execute(sa.text(sql)).fetchall()))
        except sa.exc.DBAPIError as e:
            return _of_psycopg(e.orig)

    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        seen = [one(connection, sql) for sql in statements]
    engine.dispose()
    return seen


def _of_psycopg(error: Any) -> Seen:
    diag = error.diag
    return Seen((), "", str(diag.message_primary), error.sqlstate, _number(diag.statement_position))


def pandas(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    import pandas as pd
    import sqlalchemy as sa

    engine = sa.create_engine(address.url("postgresql+psycopg"))

    def one(sql: str) -> Seen:
        try:
            return Seen(texts(pd.read_sql(sa.text(sql), engine).itertuples(index=False)))
        except pd.errors.DatabaseError as e:
            cause = e.__cause__
            assert isinstance(cause, sa.exc.DBAPIError)
            return _of_psycopg(cause.orig)

    seen = [one(sql) for sql in statements]
    engine.dispose()
    return seen


def connectorx(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    """It asks each statement with LIMIT 1 first, for its types: that is refused, or free, as the statement is."""
    import connectorx as driver

    def one(sql: str) -> Seen:
        try:
            table = driver.read_sql(address.url(more="?sslmode=disable"), sql, return_type="arrow")
        except RuntimeError as e:
            return Seen((), "", str(e))
        return Seen(texts(zip(*table.to_pydict().values(), strict=True)))

    return [one(sql) for sql in statements]


def adbc(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(address.url(), autocommit=True) as connection, connection.cursor() as cursor:

        def one(sql: str) -> Seen:
            try:
                cursor.execute(sql)
                return Seen(texts(cursor.fetchall()))
            except driver.Error as e:
                place = dict(e.details).get(b"PG_DIAG_STATEMENT_POSITION")
                return Seen((), "", str(e), e.sqlstate, None if place is None else int(place))

        return [one(sql) for sql in statements]


# --- drivers of the system --------------------------------------------------------------------------------------------


def jdbc(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    manager = java("java.sql.DriverManager")
    connection = manager.getConnection(
        f"jdbc:postgresql://127.0.0.1:{address.port}/{address.database}?sslmode=disable", address.user, address.password
    )
    statement = connection.createStatement()

    def one(sql: str) -> Seen:
        try:
            found = statement.executeQuery(sql)
        except java("java.sql.SQLException") as e:
            told = e.getServerErrorMessage()
            return Seen((), "", str(told.getMessage()), str(e.getSQLState()), told.getPosition() or None)
        width, rows = found.getMetaData().getColumnCount(), []
        while found.next():
            rows.append(tuple(str(found.getString(i)) for i in range(1, width + 1)))
        warning, told = statement.getWarnings(), []
        while warning is not None:
            told.append(str(warning.getMessage()))
            warning = warning.getNextWarning()
        return Seen(rows, "\n".join(told))

    seen = [one(sql) for sql in statements]
    connection.close()
    return seen


def java(name: str) -> Any:
    """A class of Java, in a machine that begins with the first and stays."""
    import jpype

    if not jpype.isJVMStarted():
        jpype.startJVM(classpath=[str(JAR)], convertStrings=False)
    return jpype.JClass(name)


def odbc(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    import pyodbc

    connection = pyodbc.connect(odbc_string(address), autocommit=True)
    cursor = connection.cursor()

    def one(sql: str) -> Seen:
        try:
            rows = texts(cursor.execute(sql).fetchall())
            return Seen(rows, "\n".join(text for _, text in cursor.messages or ()))
        except pyodbc.Error as e:
            return Seen((), "", e.args[1], e.args[0])

    seen = [one(sql) for sql in statements]
    connection.close()
    return seen


def odbc_string(address: Address, more: str = "SSLmode=disable") -> str:
    return (
        f"Driver={{{ODBC}}};Server=127.0.0.1;Port={address.port};Database={address.database};"
        f"Uid={address.user};Pwd={address.password};{more}"
    )


def of_node(client: str, address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    return asked_by_node(client, address, [(sql, []) for sql in statements])


def asked_by_node(client: str, address: Address, statements: Sequence[tuple[str, Sequence[Any]]]) -> list[Seen]:
    """With parameters, of which {"date": "2024-01-31"} is a Date."""
    asked = json.dumps({"client": client, "url": address.url("postgres"), "statements": statements})
    program = ["node", str(Path(__file__).with_name("node_clients.mjs"))]
    done = subprocess.run(
        program, input=asked, text=True, capture_output=True, timeout=600, env={**os.environ, "NODE_MODULES": str(NODE)}
    )
    assert done.returncode == 0, done.stderr
    return [Seen(**{**one, "rows": [tuple(row) for row in one["rows"]]}) for one in json.loads(done.stdout)]


def of_tools(client: str, address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    return [
        Seen(**{**one, "rows": [tuple(row) for row in one.get("rows", ())]})
        for one in asked_of_tools(client, address, statements)
    ]


def asked_of_tools(client: str, address: Address, statements: Sequence[str] = ()) -> Any:
    """What `tool_clients.py` finds, in the environment of tools."""
    asked = json.dumps({"client": client, "address": asdict(address), "statements": statements})
    program = [str(TOOLS), str(Path(__file__).with_name("tool_clients.py"))]
    done = subprocess.run(program, input=asked, text=True, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def of_r(address: Address, statements: Sequence[str], folder: Path) -> list[Seen]:
    file = folder / "statements"
    file.write_text("\n\1\n".join(statements), encoding="utf-8")
    return asked_by_r(address, str(file))


def asked_by_r(address: Address, what: str) -> list[Seen]:
    """What `r_clients.R` finds. Notices come as libpq writes them."""
    program = ["Rscript", "--vanilla", str(Path(__file__).with_name("r_clients.R"))]
    done = subprocess.run(
        [*program, str(address.port), address.user, address.password, address.database, what], text=True,
        capture_output=True, timeout=600, env={**os.environ, "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = []
    for printed, said in zip(done.stdout.split("\4\n")[:-1], done.stderr.split("\4\n"), strict=False):
        refused = printed.partition("\2")[2]
        told = re.search(r"\[DP\d+\] .*", refused)
        rows = [] if refused else [tuple(line.split("\3")) for line in printed.splitlines()]
        seen.append(Seen(rows, said, "" if not refused else told[0] if told else refused, place=caret(refused)))
    return seen


def _has_r() -> bool:
    libraries = "for (p in c('RPostgreSQL', 'dplyr', 'dbplyr')) loadNamespace(p)"
    return (
        shutil.which("Rscript") is not None
        and not subprocess.run(["Rscript", "-e", libraries], capture_output=True).returncode
    )


def _has_node() -> bool:
    return shutil.which("node") is not None and (NODE / "node_modules" / "pg").exists()


def _has_psql() -> bool:
    return shutil.which("psql") is not None


def _has_jdbc() -> bool:
    return JAR.exists() and (shutil.which("java") is not None or "JAVA_HOME" in os.environ)


def _has_odbc() -> bool:
    try:
        import pyodbc
    except ImportError:  # no manager of drivers, which it needs to be imported
        return False
    return ODBC in pyodbc.drivers()


OF_THE_SYSTEM = {
    "postgresql-client": _has_psql,
    "default-jre-headless libpostgresql-jdbc-java": _has_jdbc,
    "unixodbc odbc-postgresql": _has_odbc,
    "nodejs npm": _has_node,
    "r-base-core r-cran-rpostgresql r-cran-dbplyr": cache(_has_r),
}
"""Debian's packages → whether what they bring is there."""
PSQL, JDBC, ODBC_DRIVER, NODEJS, OF_R = OF_THE_SYSTEM

CLIENTS = (
    Client("psql", psql, "", PSQL),
    Client("pgcli", pgcli, "pgcli", shows_state=False),
    Client("psycopg", psycopg, "psycopg"),
    Client("psycopg2", psycopg2, "psycopg2"),
    Client("asyncpg", asyncpg, "asyncpg"),
    Client("pg8000", pg8000, "pg8000"),
    Client("sqlalchemy", sqlalchemy, "sqlalchemy", shows_notices=False),
    Client("pandas", pandas, "pandas", shows_notices=False),
    Client("connectorx", connectorx, "connectorx", shows_state=False, shows_place=False, shows_notices=False),
    Client("adbc", adbc, "adbc_driver_postgresql", shows_notices=False),
    Client("jdbc", jdbc, "jpype", JDBC),
    Client("odbc", odbc, "pyodbc", ODBC_DRIVER, shows_place=False),
    Client("node-pg", partial(of_node, "pg"), "", NODEJS),
    Client("postgres.js", partial(of_node, "postgres"), "", NODEJS),
    Client("knex", partial(of_node, "knex"), "", NODEJS, shows_notices=False),
    Client("sequelize", partial(of_node, "sequelize"), "", NODEJS, shows_notices=False),
    Client("dplyr", of_r, "", OF_R, shows_state=False),
    Client("ibis", partial(of_tools, "ibis"), "", IN_TOOLS),
    Client("dbt", partial(of_tools, "dbt"), "", IN_TOOLS, shows_state=False, shows_place=False, shows_notices=False),
)


def is_here(client: Client) -> bool:
    """Whether a client can be had. Fails where all of PyPI's have to be there, and this one is not."""
    if client.module and find_spec(client.module) is None:
        assert not REQUIRED, f"{client.name} is missing, and DPSQL_ENGINES=required"
        return False
    return not missing(client.package)


def missing(package: str) -> bool:
    """Whether what a package brings is not on this machine."""
    if package == IN_TOOLS:
        return not TOOLS.exists()
    return bool(package) and not OF_THE_SYSTEM[package]()
