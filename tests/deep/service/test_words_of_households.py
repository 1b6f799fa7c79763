"""Words that households say, without noise: what is shown and how far it is off, by keys first and by one release."""

from __future__ import annotations

import statistics
from pathlib import Path

import duckdb
import pytest

from dpsql.api.connection import Connection
from dpsql.core.ledger.memory import MemoryLedger
from dpsql.core.noise.integer_columns import Integers
from dpsql.core.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from tests.support.built_once import build
from tests.support.opened_once import opened

DATA = """\
CREATE TABLE said AS
WITH homes AS (
  SELECT id, CAST(least(300, floor(5 * pow(1 - ((id * 7919 + 17) % 10007) / 10007.0, -0.91))) AS BIGINT) AS k
  FROM range(10000) t(id)
)
SELECT id, 'w' || CAST(floor(pow(3000, ((id * 104729 + j * 15485863 + j * j * 7) % 1000003) / 1000003.0)) AS BIGINT)
  AS word
FROM homes, range(300) u(j) WHERE j < k
"""
"""10,000 households, half with up to 9 words and one in a hundred with over 150, of 3,000 words by Zipf's law."""
POLICY = """\
version: 1
name: words
database: words.duckdb
search: auto
units: {household: {}}
budgets: {total: {epsilon: 100, delta: 0.01}}
tables:
  said:
    unit: {column: id, of: household}
    LIMITS
    columns: {id: {type: bigint, nullable: false}, word: {type: varchar, nullable: false}}
"""
SQL = "SELECT word, COUNT(*) AS n FROM said GROUP BY word"


def asked(at: Path, limits: str, how: str) -> dict[str, int]:
    (at / "words.yaml").write_text(POLICY.replace("    LIMITS\n", limits), encoding="utf-8")
    with Connection(*opened(at / "words.yaml"), ledger=MemoryLedger("words")) as con:
        return dict(con.sql(SQL).run(epsilon=1, delta="1e-6", limits=how).rows)


@pytest.mark.filterwarnings("ignore:.*are shown from.*")
@pytest.mark.parametrize(("groups", "times", "nearer"), [(5, 1.05, 0.6), (10, 1.05, 0.6), (30, 1.05, 0.9)])
def test_more_words_are_shown_and_their_counts_are_nearer(
    groups: int, times: float, nearer: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (DiscreteGaussian, DiscreteLaplace):
        monkeypatch.setattr(kind, "add_noise", lambda self, values, backend=None: Integers.of(values))
    build(tmp_path / "words.duckdb", DATA)
    with duckdb.connect(str(tmp_path / "words.duckdb"), read_only=True) as data:
        true = dict(data.execute("SELECT word, COUNT(*) FROM said GROUP BY word").fetchall())
    limits = f"    max_groups_per_unit: {groups}\n    max_rows_per_group: 4\n"
    one, first = (asked(tmp_path, limits, how) for how in ("declared", "auto"))
    assert len(first) > times * len(one) and off(first, true) < nearer * off(one, true)


def off(found: dict[str, int], true: dict[str, int]) -> float:
    """What limits cut of a count, of the middle word that is shown."""
    return statistics.median(abs(n - true[word]) / true[word] for word, n in found.items())
