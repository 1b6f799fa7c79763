"""`make spark-server` runs a cluster that a policy can ask, says how, and leaves nothing behind after Ctrl-C."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsql
from tests.engines_elsewhere.environment import ROOT
from tests.engines_elsewhere.spark.servers import why_not

pytestmark = pytest.mark.long_on_spark

POLICY = """
version: 1
name: tried
database: ADDRESS
tables:
  t:
    source: read_parquet('FOLDER/t')
    unit: {of: person, column: i}
    max_rows_per_unit: 1
    columns: {i: {type: bigint}}
budgets: {total: {epsilon: 1000000000}}
"""


def test_it_answers_until_it_is_interrupted(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"i": range(7)}), tmp_path / "t" / "part.parquet")
    line = next(
        each for each in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines() if "spark.servers" in each
    )
    command = line.strip().removeprefix("@exec .venv-engines/spark/bin/python ").replace("$(SPARK_PORT)", "0").split()
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, cwd=ROOT) as running:
        assert running.stdout is not None
        try:
            address, told = running.stdout.readline().strip(), running.stdout.readline()
            assert f"database: {address} " in told
            policy = tmp_path / "policy.yaml"
            policy.write_text(POLICY.replace("ADDRESS", address).replace("FOLDER", str(tmp_path)), encoding="utf-8")
            with dpsql.connect(policy) as con:
                assert list(con.sql("SELECT COUNT(*) AS n FROM t").run(epsilon=10**8).rows) == [(7,)]
        finally:
            running.send_signal(signal.SIGINT)
        assert running.wait(300) == 0
    found = re.fullmatch(r"sc://127\.0\.0\.1:(\d+)", address)
    assert found is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(found[1])))
