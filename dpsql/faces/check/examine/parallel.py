"""Texts → their examinations, in this process or in several: the same results in the same order either way."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeAlias, TypeVar

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.errors import Error, reject
from dpsql.faces.check.documents.parameter_values import Values
from dpsql.faces.check.examine.examination import Examination, examine
from dpsql.faces.check.examine.records import Record, from_record, to_record

T = TypeVar("T")
WORTH_A_PROCESS: Final = {"fork": 150, "spawn": 600}
"""So many texts keep a process busy for longer than it needs to start."""
_CHUNK: Final = 16
_AHEAD: Final = 3
"""Chunks that each other process has waiting: enough to be busy while this one works on one."""

_Asked: TypeAlias = tuple[Policy, str, Values, bool | None]
"""What every text is examined with: policy, dialect, values of parameters, whether limits are searched."""


def usual_jobs() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def examine_all(
    texts: Sequence[str],
    policy: Policy,
    dialect: str,
    jobs: int | None = None,
    start: str | None = None,
    parameters: Values | None = None,
    search: bool | None = None,
) -> list[Examination | None]:
    """The examination of each text; None where dpsql itself failed.

    jobs: how many processes, None: as many as there are processors, if there are texts enough. start: how others are
    started (`spawn`, `fork`), None: as is safe here. parameters: values for all texts. search: whether limits are
    searched.
    Raises Rejected DP903 for an unknown dialect, DP904 if another process ends without a result.
    """
    chunks = [texts[at : at + _CHUNK] for at in range(0, len(texts), _CHUNK)]
    start = start or _start()
    asked = policy, dialect, parameters or {}, search
    wanted = min(usual_jobs(), 1 + len(texts) // WORTH_A_PROCESS[start]) if jobs is None else jobs
    wanted = min(wanted, len(chunks))
    if wanted <= 1:
        return [_safely(text, *asked) for text in texts]
    try:
        return _with_others(chunks, asked, wanted - 1, start)
    except BrokenProcessPool:
        raise reject(
            "DP904", "a process of the check ended without a result",
            help=["run it with  --jobs 1  and report what happens, without data"],
        ) from None  # fmt: skip


def _with_others(chunks: Sequence[Sequence[str]], asked: _Asked, others: int, start: str) -> list[Examination | None]:
    """This process takes chunks from the front while others, which have to start first, take them from the end."""
    done: dict[int, list[Examination | None]] = {}
    given: dict[int, Future[list[Record]]] = {}
    front, back = 0, len(chunks)
    with _safe_path(), ProcessPoolExecutor(others, multiprocessing.get_context(start), _begin, asked) as pool:
        while front < back:
            waiting = sum(not future.done() for future in given.values())
            for _ in range(min(_AHEAD * others - waiting, back - front)):
                back -= 1
                given[back] = _unheard(partial(pool.submit, _work, list(chunks[back])))
            if front < back:
                done[front] = [_safely(text, *asked) for text in chunks[front]]
                front += 1
        for number, future in given.items():
            done[number] = [None if record is None else from_record(record) for record in future.result()]
    return [examination for number in range(len(chunks)) for examination in done[number]]


@contextmanager
def _safe_path() -> Iterator[None]:
    """Processes started meanwhile import nothing from the current folder: in a checkout those are a branch's modules.

    One that starts from nothing (a `spawn`ed worker, and multiprocessing's own tracker) would look there first.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _unheard(action: Callable[[], T]) -> T:
    """Act so that the processes and threads that are started meanwhile never hear a Ctrl-C, not even at their start.

    It is this process's business. One that had ended of it would be told as an end without a result.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return action()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        return action()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start() -> str:
    """Forking is quick, and safe on Linux while there is one thread; elsewhere processes start from nothing."""
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"


def _safely(text: str, policy: Policy, dialect: str, parameters: Values, search: bool | None) -> Examination | None:
    try:
        return examine(text, policy, dialect, parameters, search)
    except Error:
        raise
    except Exception:  # an error in dpsql, which must not hide what is found in other files; reported by the caller
        return None


_given: _Asked | None = None


def _begin(policy: Policy, dialect: str, parameters: Values, search: bool | None) -> None:
    """What another process does first. Where signals cannot be blocked, it does not hear Ctrl-C from now on."""
    global _given
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _given = (policy, dialect, parameters, search)


def _work(texts: list[str]) -> list[Record]:
    assert _given is not None
    found = [_safely(text, *_given) for text in texts]
    return [None if examination is None else to_record(examination) for examination in found]
