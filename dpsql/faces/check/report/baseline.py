"""A baseline: the findings that a repository had when it began, so that a check fails for new ones only.

A finding is kept by its file (relative to the baseline's folder), its code and the shape of its statement, not by its
place: lines may move, white space and comments change. Where the same statement stands more than once, so often.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from dpsql.diagnostics.errors import Rejected, reject
from dpsql.faces.check.report.finding import Finding

_FORM: Final = 1
_MOST_BYTES: Final = 100_000_000


class KnownFinding(NamedTuple):
    """What a finding is kept by."""

    path: str
    code: str
    hash: str


@dataclass(frozen=True, slots=True)
class Compared:
    """The findings that are new, how many are known, and what the baseline holds that does not occur any more."""

    new: tuple[Finding, ...]
    known: int
    gone: tuple[tuple[KnownFinding, int], ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """How often each known finding may occur. folder: what its paths are relative to."""

    folder: Path
    entries: Counter[KnownFinding]

    def compared(self, findings: Sequence[Finding], checked: Collection[str]) -> Compared:
        """Take the known findings out. checked: the files that were looked at: what is known of others says nothing,
        unless the file is gone."""
        left = Counter(self.entries)
        new = []
        for finding in findings:
            key = key_of(finding, self.folder)
            if left[key] > 0:
                left[key] -= 1
            else:
                new.append(finding)
        seen = {_relative(name, self.folder) for name in checked}
        gone = tuple(
            (key, count)
            for key, count in sorted(left.items())
            if count > 0 and (key.path in seen or not (self.folder / key.path).exists())
        )
        return Compared(tuple(new), len(findings) - len(new), gone)


def key_of(finding: Finding, folder: Path) -> KnownFinding:
    """What a finding is kept by in a baseline in this folder."""
    source = finding.diagnostic.source
    name = "" if source is None else source.name
    return KnownFinding(_relative(name, folder), finding.diagnostic.code, finding.shape)


def read_baseline(file: Path) -> Baseline:
    """Raises Rejected DP903 if the file cannot be read or is no baseline."""
    try:
        with file.open("rb") as stream:
            content = json.loads(stream.read(_MOST_BYTES))
        if content["version"] != _FORM:
            raise ValueError
        entries: Counter[KnownFinding] = Counter()
        for entry in content["findings"]:
            key = KnownFinding(entry["path"], entry["code"], entry["hash"])
            count = entry["count"]
            if not all(isinstance(part, str) for part in key) or type(count) is not int or count < 1:
                raise ValueError
            entries[key] += count
    except FileNotFoundError:
        raise _unusable(file, "there is no such file") from None
    except OSError as error:
        raise _unusable(file, (error.strerror or "it cannot be opened").lower()) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _unusable(file, "it is no baseline of this version of dpsql") from None
    return Baseline(file.absolute().parent, entries)


def write_baseline(file: Path, findings: Iterable[Finding]) -> int:
    """Write the findings as a baseline, sorted, and say how many there are.

    Raises Rejected DP903: it cannot be written, or it is there and no baseline: nothing else is overwritten.
    """
    folder = file.absolute().parent
    if _holds_something_else(file):
        raise reject(
            "DP903", f"{str(file)!r} is there already, and is no baseline", help=["remove it, or name another file"]
        )
    entries = Counter(key_of(finding, folder) for finding in findings)
    lines = ",\n".join(f"  {json.dumps({**key._asdict(), 'count': count})}" for key, count in sorted(entries.items()))
    text = (
        f'{{"version": {_FORM}, "findings": [\n{lines}\n]}}\n' if lines else f'{{"version": {_FORM}, "findings": []}}\n'
    )
    try:
        file.write_bytes(text.encode("ascii"))
    except OSError as error:
        reason = (error.strerror or "it cannot be opened").lower()
        raise reject("DP903", f"the baseline {str(file)!r} cannot be written: {reason}") from None
    return sum(entries.values())


def _holds_something_else(file: Path) -> bool:
    """Whether it is a policy, a ledger, a query …; baselines of other versions begin as ours do."""
    if not file.is_file():
        return False
    try:
        with file.open("rb") as stream:
            begin = stream.read(64)
    except OSError:
        return False
    return bool(begin) and not begin.lstrip().startswith(b'{"version"')


def _relative(name: str, folder: Path) -> str:
    if name.startswith("<"):
        return name
    return os.path.relpath(os.path.abspath(name), folder).replace(os.sep, "/")


def _unusable(file: Path, reason: str) -> Rejected:
    return reject(
        "DP903", f"the baseline {str(file)!r} cannot be read: {reason}", help=["write it with  --write-baseline FILE"]
    )
