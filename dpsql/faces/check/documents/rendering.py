"""Rendering in a process of its own, which ends when a template takes too much time or memory.

Jinja's sandbox keeps templates from Python and from long ranges, but not from loops in loops, `'x' * 10**10` or
`10**10**10`; only the end of a process stops these. One process renders many texts, one after the other: its start is
most of the time. What it is asked is pickled by the process that starts it; what it answers is JSON alone.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

TIME: Final = "time"
MEMORY: Final = "memory"
LENGTH: Final = "length"
ENDED: Final = "ended"
BROKEN: Final = "broken"
MISSING: Final = "missing"
"""Why there is no text. ENDED: the process did, nobody knows why. BROKEN: an error in the template's own expressions.
MISSING: sqlfluff cannot be imported."""

_SLACK: Final = 60
"""Seconds that a process may take to start, and by the clock beyond what it may take of a processor."""


@dataclass(frozen=True, slots=True)
class RenderingLimits:
    """What rendering one text may take.

    seconds: of a processor's time, where the system counts that (not on Windows); a minute more by the clock is the end
    everywhere. bytes: of memory, where the system has such a limit. characters: of the rendered text.
    """

    seconds: float = 10
    bytes: int = 1_000_000_000
    characters: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Rendered:
    """pieces: start and end in the text, start and end in the template, whether both are the same characters."""

    text: str
    pieces: tuple[tuple[int, int, int, int, bool], ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """A complaint of the templater about a text. line, column: from 1; 0: not known."""

    said: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class RenderingFailure:
    """No text: why (one of the constants of this module), or the templater's complaints."""

    why: str
    problems: tuple[Problem, ...] = ()


class Renderer:
    """Texts → rendered ones, through a process that is started when the first one comes, and again after it had to end.

    It ends with this object. One text at a time, whichever thread asks.
    """

    def __init__(self, variables: Mapping[str, Any], macros: tuple[str, ...], limits: RenderingLimits) -> None:
        self._asked = dict(variables), macros, limits
        self._limits = limits
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = _nothing

    def __call__(self, text: str, name: str) -> Rendered | RenderingFailure:
        """Raises OSError if no process can be started."""
        with self._lock:
            if self._process is None:
                started = self._start()
                if started is not None:
                    return started
            answer = self._ask(json.dumps([text, name]).encode() + b"\n", self._limits.seconds + _SLACK)
        if "text" in answer:
            return Rendered(answer["text"], tuple(map(tuple, answer["pieces"])))
        return RenderingFailure(answer["why"], tuple(Problem(*problem) for problem in answer.get("problems", ())))

    def _start(self) -> RenderingFailure | None:
        # Not as a module: the folder that is checked would be looked into for Python's own modules first.
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from dpsql.faces.check.documents.rendering import serve; serve()"
        )
        command = [sys.executable, "-P", "-c", code]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self._process, self._end = process, weakref.finalize(self, _stop, process)
        why = self._ask(pickle.dumps(self._asked), _SLACK).get("why")
        return None if why is None else RenderingFailure(why)

    def _ask(self, request: bytes, seconds: float) -> dict[str, Any]:
        """One line for one request; without one, why there is none. A process that has failed so is ended."""
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        late: list[bool] = []
        # A bare thread and a bare lock: a Ctrl-C within Python's own Timer would leave it running, and the end of this
        # process waits for it.
        answered = threading.Lock()
        answered.acquire()

        def end() -> None:
            if not answered.acquire(timeout=seconds):
                late.append(True)
                process.kill()

        try:
            _thread.start_new_thread(end, ())
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(request)
                process.stdin.flush()
            line = process.stdout.readline()
            if line.endswith(b"\n"):
                answer: dict[str, Any] = json.loads(line)
            else:
                ended = -process.wait()
                answer = {"why": TIME if late or ended == getattr(signal, "SIGPROF", None) else ENDED}
        except BaseException:  # Ctrl-C: its answer is not that to the next request
            self._drop()
            raise
        finally:
            answered.release()
        if answer.get("why") in (TIME, ENDED, MEMORY, MISSING):
            self._drop()
        return answer

    def _drop(self) -> None:
        self._process = None
        self._end()


def _nothing() -> None:
    """Before there is a process, nothing has to be ended."""


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()


# --- in the other process --------------------------------------------------------------------------------------------


def serve() -> None:
    """Answer what stands on standard input until that ends."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    sys.stdout = sys.stderr  # what a library prints is no answer
    variables, macros, limits = pickle.load(requests)
    try:
        worker = Worker(variables, macros, limits)
    except ImportError:
        _say(answers, {"why": MISSING})
        return
    limit_memory(limits.bytes)
    _say(answers, {})
    for line in requests:
        text, name = json.loads(line)
        with limited_time(limits.seconds):
            answer = worker.answer(text, name)
        _say(answers, answer)


def _say(answers: IO[bytes], answer: Mapping[str, Any]) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


def limit_memory(most: int) -> None:
    """This process gets no more memory than so many bytes from now on; where the system cannot say so, nothing."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(ValueError, OSError):  # macOS
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


@contextlib.contextmanager
def limited_time(seconds: float) -> Iterator[None]:
    """The system ends this process if it computes for longer, in C code as well."""
    if not hasattr(signal, "setitimer"):  # Windows
        yield
        return
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Worker:
    """What renders. Raises ImportError when made without sqlfluff."""

    def __init__(self, variables: Mapping[str, Any], macros: tuple[str, ...], limits: RenderingLimits) -> None:
        from sqlfluff.core import FluffConfig
        from sqlfluff.core.errors import SQLFluffSkipFile, SQLTemplaterError
        from sqlfluff.core.templaters import JinjaTemplater

        section: dict[str, Any] = {"apply_dbt_builtins": False}
        if macros:
            section["load_macros_from_path"] = ",".join(macros)
        # Nothing of the project's own configuration: it could name libraries, which are Python code.
        self._config = FluffConfig(
            configs={"core": {"dialect": "ansi"}, "templater": {"jinja": section}}, ignore_local_config=True
        )
        self._templater = JinjaTemplater(override_context=dict(variables))
        self._failures = (SQLTemplaterError, SQLFluffSkipFile)
        self._limits = limits

    def answer(self, text: str, name: str) -> dict[str, Any]:
        """`text` and `pieces`, or `why` and perhaps `problems`."""
        try:
            found, problems = self._templater.process(in_str=text, fname=name, config=self._config)
            if problems:
                return {"why": BROKEN, "problems": [_problem(problem) for problem in problems]}
            if len(found.templated_str) > self._limits.characters:
                return {"why": LENGTH}
            return {"text": found.templated_str, "pieces": [_piece(part) for part in found.sliced_file]}
        except self._failures as error:
            return {"why": BROKEN, "problems": [_problem(error)]}
        except MemoryError:
            return {"why": MEMORY}
        except Exception:  # whatever a template's own expressions raise
            return {"why": BROKEN}


def _problem(error: Any) -> list[Any]:
    said = str(getattr(error, "desc", lambda: "")() or error).strip()
    return [said, int(getattr(error, "line_no", 0) or 0), int(getattr(error, "line_pos", 0) or 0)]


def _piece(part: Any) -> list[Any]:
    """Of sqlfluff's slices literal ones are the same characters; all others are at their tag."""
    new, old = part.templated_slice, part.source_slice
    same = part.slice_type == "literal" and old.stop - old.start == new.stop - new.start
    return [new.start, new.stop, old.start, old.stop, same]
