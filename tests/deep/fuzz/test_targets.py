"""Every place where bytes come in: the corpus is replayed, changed inputs are tried, a broken handler is noticed."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.answers.stored.resolve import resolve
from dpsql.answers.stored.store.sqlite import SqliteAnswers
from dpsql.api.connection import Connection
from dpsql.core.ledger.chain.hash_chain import BrokenChain, LedgerRow
from dpsql.core.ledger.sqlite import SqliteLedger
from dpsql.diagnostics.errors import reject
from tests.deep.fuzz import answers, flags, ledger, loop, parameters, policy, sql, wire
from tests.deep.fuzz.__main__ import NAMES
from tests.deep.fuzz.target import CORPUS, Target

TARGETS = {m.TARGET.name: m.TARGET for m in (policy, sql, flags, parameters, ledger, answers, wire)}
FILES = [path for name in NAMES for path in TARGETS[name].files()]
EXAMPLES = {"policy": 25, "sql": 120, "flags": 30, "parameters": 50, "ledger": 30, "answers": 40, "wire": 200}
"""Changed inputs of the quick run; the slow one tries several times as many."""
VARIETY = {
    "policy": {"loaded", "DP001", "DP002", "DP003"},
    "sql": {"plan", "answer", "DP010", "DP101", "DP102", "DP103"},
    "flags": {"0", "1", "2"},
    "parameters": {"answer", "DP406", "DP903"},
    "ledger": {"opened", "DP407", "accepted"},
    "answers": {"found", "fewer", "DP407"},
    "wire": {"N", "08P01", "28P01", "fine", "42P01", "42601"},
}
"""Last words of the outcomes that the slow run has to have met, or its inputs are no good."""


def test_every_target_has_a_corpus_and_nothing_else_has() -> None:
    assert tuple(TARGETS) == NAMES
    assert {path.name for path in CORPUS.iterdir()} == set(NAMES)
    assert all(len(TARGETS[name].files()) >= 3 for name in NAMES)


def test_what_broke_a_contract_once_is_named_by_what_it_is() -> None:
    assert [path for path in FILES if path.name.startswith("crash-")] == []


HEALTHY = {
    "answers/intact": "found",
    "ledger/intact": "opened",
    "ledger/intact-in-the-log": "opened",
    "ledger/accepted-older-copy": "accepted",
    "flags/a-query": "query 0",
    "flags/explained": "explain 0",
    "policy/unit-by-rows": "loaded",
    "parameters/defaults": "answer",
    "sql/count": "answer",
    "wire/a-query": "then fine",
    "wire/a-wrong-proof": "28P01",
}
"""What refuses everything keeps every contract."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_corpus_is_replayed(path: Path) -> None:
    name = f"{path.parent.name}/{path.name}"
    outcome = TARGETS[path.parent.name].one(path.read_bytes())
    assert outcome == HEALTHY.get(name, outcome)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_changed_inputs(name: str) -> None:
    target = TARGETS[name]
    corpus = target.corpus()

    @given(rng=st.randoms(use_true_random=False))
    @settings(max_examples=EXAMPLES[name])
    def tried(rng: Random) -> None:
        target.one(target.mutate(rng.choice(corpus), rng, corpus))

    tried()


@pytest.mark.parametrize("name", NAMES)
def test_many_changed_inputs(name: str) -> None:
    """Chosen blindly, by a fixed seed, the same each time."""
    target, rng = TARGETS[name], Random(20261121)
    corpus, seen = target.corpus(), Counter[str]()
    for _ in range(4 * EXAMPLES[name]):
        data = target.mutate(rng.choice(corpus), rng, corpus)
        try:
            seen[target.one(data).split()[-1]] += 1
        except Exception as error:
            raise AssertionError(f"{name}: {data!r}") from error
    assert VARIETY[name] <= seen.keys(), seen


# A broken handler is noticed ------------------------------------------------------------------------------------------


def failing(*_: object, **__: object) -> Any:
    raise KeyError("unforeseen")


def refusing(*_: object, **__: object) -> Any:
    raise reject("DP101", "not here")


def hoarding(decoder: Any, data: bytes) -> None:
    """Makes room for what a client says that it will send."""
    decoder._buffer = bytearray(min(int.from_bytes(data[:4], "big"), 10**6))
    decoder._buffer[: len(data)] = data


Patch = Callable[[pytest.MonkeyPatch], None]
BROKEN: dict[str, tuple[str, Patch]] = {  # what is broken: an input that shows it, and how it is broken
    "a policy makes a traceback": ("policy/empty", lambda m: m.setattr("dpsql.policy.load.read_yaml", failing)),
    "a policy that loads cannot be shown": (
        "policy/unit-by-rows",
        lambda m: m.setattr("tests.deep.fuzz.policy.show_policy", failing),
    ),
    "a policy is refused without words": (
        "policy/nul",
        lambda m: m.setattr("dpsql.diagnostics.errors.Error.__str__", lambda error: ""),
    ),
    "the compiler fails": ("sql/count", lambda m: m.setattr("dpsql.planner.stages.query_to_plan.bind", failing)),
    "a refusal has no place": (
        "sql/count",
        lambda m: m.setattr("tests.deep.fuzz.sql.static_plan", refusing),
    ),
    "the engine fails": (
        "sql/count",
        lambda m: m.setattr("dpsql.engines.duckdb.engine.DuckDBEngine.in_snapshot", failing),
    ),
    "a refused call charges": ("flags/a-query", lambda m: m.setattr(Connection, "run", charging)),
    "a traceback is shown": (
        "flags/beyond-the-budget",
        lambda m: m.setattr("dpsql.faces.cli.exits.complain", lambda _: print("Traceback")),
    ),
    "an exit code is not documented": (
        "flags/beyond-the-budget",
        lambda m: m.setattr("dpsql.faces.cli.exits.status_of", lambda error: 77),
    ),
    "a refusal says nothing": (
        "flags/beyond-the-budget",
        lambda m: m.setattr("dpsql.faces.cli.exits.complain", lambda _: None),
    ),
    "settings are not checked": (
        "parameters/epsilon",
        lambda m: m.setattr("dpsql.service.privacy_settings.exact_epsilon", failing),
    ),
    "a look charges": ("parameters/defaults", lambda m: m.setattr(Connection, "price", charging)),
    "hashes are not compared": (
        "ledger/smaller-charge",
        lambda m: m.setattr(LedgerRow, "_hash_after", lambda row, last: row.hash),
    ),
    "heads are not compared": (
        "ledger/older-copy",
        lambda m: m.setattr(SqliteLedger, "_check_head", lambda ledger: None),
    ),
    "the chain's refusals are not caught": (
        "ledger/smaller-charge",
        lambda m: m.setattr("dpsql.core.ledger.chained.BrokenChain", OSError),
    ),
    "the identity's kinds are not looked at": (
        "ledger/nonce-as-blob",
        lambda m: m.setattr("dpsql.core.ledger.sqlite_schema.isinstance", lambda value, kind: True, raising=False),
    ),
    "rows have no hashes": (
        "answers/smaller-loss",
        lambda m: m.setattr("dpsql.answers.stored.store.stored_rows.hash_of", lambda row: ANY),
    ),
    "damage is not caught": (
        "answers/smaller-loss",
        lambda m: m.setattr("dpsql.answers.stored.store.stored_rows.unusable", failing),
    ),
    "a port fails": ("wire/bytes-before-tls", lambda m: m.setattr("dpsql.faces.server.front.listen.opened", failing)),
    "a conversation fails": (
        "wire/a-query",
        lambda m: m.setattr("dpsql.faces.server.front.conversation.command", failing),
    ),
    "memory is taken for what is announced": (
        "wire/a-length-of-four-gigabytes",
        lambda m: m.setattr("dpsql.faces.server.wire.messages.Decoder.feed", hoarding),
    ),
    "triggers are not looked at": (
        "answers/trigger-that-deletes",
        lambda m: m.setattr(SqliteAnswers, "_is", lambda store, connection: True),
    ),
}


def charging(connection: Connection, plan: Any, **_: object) -> Any:
    """A run, or a look, that charges and then fails."""
    account = connection.service.account(connection.analyst)
    account.charge(plan, resolve(plan, account).given)
    failing()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_handler_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, patch = BROKEN[name]
    one, data = TARGETS[place.partition("/")[0]].one, (CORPUS / place).read_bytes()
    one(data)  # it keeps the contract, and what is made once is made before it is broken
    patch(monkeypatch)
    with pytest.raises((AssertionError, KeyError, BrokenChain, TypeError)):
        one(data)


def test_the_loop_keeps_what_breaks_a_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One input for each place, and says so; a healthy target leaves nothing."""
    monkeypatch.setattr("tests.deep.fuzz.target.CORPUS", tmp_path)
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "seed").write_bytes(b"seed")

    def one(data: bytes) -> str:
        assert data.startswith(b"seed"), "not a seed"
        return "fine"

    def mutate(data: bytes, rng: Random, others: object) -> bytes:
        return data + b"!" if rng.random() < 0.9 else bytes([rng.randrange(256)])

    assert loop.blind(Target("broken", lambda data: "fine", mutate), 0.05, 1)
    assert not loop.blind(Target("broken", one, mutate), 0.2, 1)
    (kept,) = folder.glob("crash-*")
    assert not kept.read_bytes().startswith(b"seed")


@pytest.mark.processes
def test_the_command(root: Path) -> None:
    call = [sys.executable, "-m", "tests.deep.fuzz", "--blind", "--seed", "1", "--minutes", "0.005"]
    done = subprocess.run([*call, "answers"], cwd=root, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "answers: " in done.stdout, done.stderr
    assert subprocess.run([*call, "nonsense"], cwd=root, capture_output=True, timeout=120).returncode == 2
