"""Servers for the tests: found on the machine or installed by pip, started in a folder of their own, and ended.

They listen on a socket in that folder only. As root they run as another user, for the server refuses root.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

SETTINGS = {
    "listen_addresses": "", "fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB",
    "max_connections": "60", "temp_file_limit": "64MB", "log_min_messages": "warning", "jit": "off",
}  # fmt: skip
READER = "reader"
"""A role that may read what it is told to, and nothing else."""


def found() -> dict[str, Path]:
    """Name → folder of the programs, of each server there is."""
    places = {
        f"postgres{folder.parent.name}": folder
        for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if (folder / "initdb").exists() and (folder / "postgres").exists()
    }
    spec = importlib.util.find_spec("pgserver")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(place) / "pginstall" / "bin"
        if (folder / "initdb").exists():
            places["pgserver"] = folder
    return places


def _user() -> Mapping[str, Any]:
    """Whom a server runs as: us, unless we are root."""
    if os.name == "nt" or os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return {}


@dataclass
class Server:
    """A running server. folder: its socket, its data and its log. bin: its programs."""

    name: str
    bin: Path
    folder: Path
    databases: int = field(default=0)

    def address(self, database: str = "postgres", user: str = READER, **more: str) -> str:
        """As a policy names it."""
        extra = "".join(f"&{key}={value}" for key, value in more.items())
        return f"postgresql://{user}@/{database}?host={self.folder}{extra}"

    def admin(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """A connection that may do anything."""
        return psycopg.connect(self.address(database, "postgres"), autocommit=True)

    def new_database(self, script: str = "") -> str:
        """A database of its own, in which the reader may read all that the script makes."""
        self.databases += 1
        name = f"d{self.databases}_{os.getpid()}"
        with self.admin() as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'")
        if script:
            self.run(name, script)
        return name

    def run(self, database: str, script: str) -> None:
        """A script of ours, after which the reader may read all tables of all schemas."""
        with self.admin(database) as admin:
            admin.execute(script)
            schemas = admin.execute(
                "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
            ).fetchall()
            for (schema,) in schemas:
                admin.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO {READER}')
                admin.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO {READER}')

    def drop(self, database: str) -> None:
        """Remove a database, whoever is connected."""
        with self.admin() as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    @property
    def answers(self) -> bool:
        """Whether it is there."""
        try:
            self.admin().close()
            return True
        except psycopg.Error:
            return False

    @property
    def process(self) -> int:
        """The number of the server's first process."""
        return int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0])

    def kill(self) -> None:
        """As a machine that loses its power: every process of the server is gone at once."""
        mother = self.process
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(mother)], capture_output=True, text=True).stdout
        for number in (mother, *map(int, children.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        while any(_lives(number) for number in (mother, *map(int, children.split()))):
            time.sleep(0.02)
        # A first process that nobody has waited for keeps its number, and would be taken for one that lives.
        for left in (self.folder / "data" / "postmaster.pid", self.folder / ".s.PGSQL.5432.lock"):
            left.unlink(missing_ok=True)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = self.folder / "log"
        command = [self.bin / "pg_ctl", "-D", self.folder / "data", "-w", "-t", "120", "-l", log, "start"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, **_user()
        )
        assert done.returncode == 0, log.read_text() if log.exists() else "no log"

    def stop(self) -> None:
        """End it, whoever is connected."""
        subprocess.run(
            [self.bin / "pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **_user(),
        )  # fmt: skip


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{number}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


@contextlib.contextmanager
def running(name: str, programs: Path) -> Iterator[Server]:
    """A new server, ended and removed afterwards."""
    # A short path that other users may enter: that of a socket has 107 characters at the most.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp" if os.path.isdir("/tmp") else None))
    server = Server(name, programs, folder)
    try:
        user = _user()
        if user:
            os.chown(folder, user["user"], user["group"])
            if not _may_run(programs / "postgres", user):
                server.bin = _copied(programs, folder)
        subprocess.run(
            [server.bin / "initdb", "-D", folder / "data", "-U", "postgres", "--auth=trust", "--no-sync",
             "--encoding=UTF8", "--locale=C.UTF-8"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, cwd=folder, **user,
        )  # fmt: skip
        with open(folder / "data" / "postgresql.conf", "a", encoding="utf-8") as file:
            file.write(f"unix_socket_directories = '{folder}'\n")
            file.writelines(f"{key} = '{value}'\n" for key, value in SETTINGS.items())
        server.start()
        with server.admin() as admin:
            admin.execute(f"CREATE ROLE {READER} LOGIN NOINHERIT")
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _may_run(program: Path, user: Mapping[str, Any]) -> bool:
    try:
        return subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, cwd="/", **user).returncode == 0
    except OSError:
        return False


def _copied(programs: Path, folder: Path) -> Path:
    """The installation, where its user may reach it: a checkout may lie in a folder that nobody else may enter.

    Programs of a package find its libraries beside the package.
    """
    package = programs.parents[1]
    place = folder / "install" / package.name / programs.parent.name
    shutil.copytree(programs.parent, place, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / "install" / libraries.name)
    for path in (folder / "install", *(folder / "install").rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    return place / "bin"
