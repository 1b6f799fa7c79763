"""Runs Coq: what has changed is compiled, in a folder of its own; claims and cited lemmas are computed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BUILT = FOLDER.parent.parent / ".proofs"
FILES = (
    "Near",
    "Ops",
    "Rules",
    "Plan",
    "Freq",
    "Itself",
    "Sound",
    "Checked",
    "Tiny",
    "Bounds",
    "Release",
    "Mech",
    "End",
    "Example",
)
"""Each after those that it needs."""

CLOSED = "Closed under the global context"


class ProofError(Exception):
    """A proof does not hold, or Coq says something that was not expected."""


VERSION = "8.16"
"""Debian's. Scripts of proofs may not hold in another one."""


def coq() -> bool:
    """Whether Coq is here, in the version that the proofs are written for."""
    if shutil.which("coqc") is None:
        return False
    told = subprocess.run(["coqc", "--version"], capture_output=True, text=True, check=False).stdout
    return f"version {VERSION}" in told


def coqc(name: str, folder: Path = BUILT) -> str:
    """Compile one file of a folder, and return what it prints. Raises ProofError."""
    done = subprocess.run(
        ["coqc", "-q", "-Q", ".", "Dpsql", f"{name}.v"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ProofError(f"{name}.v: {done.stderr or done.stdout}")
    return done.stdout


def compile_all(folder: Path = BUILT, sources: Path = FOLDER) -> list[str]:
    """Compile what changed, and whatever comes after it; the names of what was compiled. Raises ProofError."""
    folder.mkdir(exist_ok=True)
    done: list[str] = []
    for name in FILES:
        text = (sources / f"{name}.v").read_text(encoding="utf-8")
        kept = folder / f"{name}.v"
        fresh = kept.exists() and kept.read_text(encoding="utf-8") == text and (folder / f"{name}.vo").exists()
        if fresh and not done:
            continue
        (folder / f"{name}.vo").unlink(missing_ok=True)
        kept.write_text(text, encoding="utf-8")
        coqc(name, folder)
        done.append(name)
    return done


def assumptions(lemmas: Sequence[str], folder: Path = BUILT) -> str:
    """What any of the lemmas rests on besides what it says itself; empty if all of them are proved whole."""
    modules = " ".join(sorted({lemma.partition(".")[0] for lemma in lemmas}))
    together = ", ".join(f"@{lemma}" for lemma in lemmas)
    lines = [f"From Dpsql Require {modules}.", f"Definition cited := ({together}).", "Print Assumptions cited."]
    (folder / "Cited.v").write_text("\n".join(lines) + "\n", encoding="utf-8")
    told = coqc("Cited", folder).strip()
    return "" if told == CLOSED else told


def computed(name: str, library: str, modules: str, term: str, folder: Path = BUILT, before: str = "") -> list[int]:
    """A list of numbers, as Coq itself computes it. before: definitions. Raises ProofError."""
    lines = [f"Require Import {library}.", f"From Dpsql Require Import {modules}.", "Import ListNotations.", before]
    (folder / f"{name}.v").write_text("\n".join([*lines, f"Eval vm_compute in ({term})."]) + "\n", encoding="utf-8")
    told = " ".join(coqc(name, folder).split())
    found = re.fullmatch(r"= \[([\d;% nat]*)\](?:%\w+)? : list nat", told)
    if found is None:
        raise ProofError(f"{name}.v: Coq told {told[:400]}")
    return [int(each) for each in re.findall(r"\d+", found[1])]


def refused(claims: Sequence[str], folder: Path = BUILT) -> list[int]:
    """The numbers of the claims that are not covered by what is derived. Coq itself computes them."""
    each = ";\n".join(claims)
    return computed("Claims", "List ZArith", "Plan Checked", f"refused 0 ([\n{each}] : list claim)", folder)


def unproved(texts: Iterable[str]) -> set[str]:
    """Words by which something would be taken for proved that is not."""
    without = (re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL) for text in texts)
    return {
        word
        for text in without
        for word in re.findall(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|give_up)\b", text)
    }
