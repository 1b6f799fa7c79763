"""What a fuzz target is, where its corpus lies, and the mutations that suit any input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

CORPUS = Path(__file__).resolve().parent / "corpus"
"""One folder per target, one file per input: seeds, and whatever ended badly once, named by what it is."""


@dataclass(frozen=True, slots=True)
class Target:
    """One place where bytes come in.

    one: what is done with an input; it raises if the contract is broken, and else says in a word what came of it.
    mutate: another input made of one that is given; `others` are inputs to take pieces from.
    seeds: more inputs to start from, that lie elsewhere in the repository.
    """

    name: str
    one: Callable[[bytes], str]
    mutate: Callable[[bytes, Random, Sequence[bytes]], bytes]
    seeds: Callable[[], Sequence[bytes]] = tuple

    @property
    def folder(self) -> Path:
        """Where its corpus lies."""
        return CORPUS / self.name

    def corpus(self) -> list[bytes]:
        """Every input that is kept, in the order of their names, then the seeds."""
        return [path.read_bytes() for path in self.files()] + list(self.seeds())

    def files(self) -> list[Path]:
        """The files of the corpus, in the order of their names."""
        return sorted(path for path in self.folder.iterdir() if path.is_file())


def damaged(data: bytes, rng: Random, others: Sequence[bytes], pieces: Sequence[bytes]) -> bytes:
    """Bytes after one change: a flipped bit, a written byte, a run cut out, doubled or replaced, the end cut off."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((0, 1, 2, 4, 8, 30)))
    match rng.randrange(8):
        case 0 if data:
            at = rng.randrange(len(data))
            return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        case 1:
            return data[:start] + bytes([rng.randrange(256)]) + data[end:]
        case 2:
            return data[:start] + data[end:]
        case 3:
            return data[:start] + data[start:end] * 2 + data[end:]
        case 4:
            return data[:start]
        case 5 if others:
            other = rng.choice(others)
            low = rng.randrange(len(other) + 1)
            return data[:start] + other[low : low + rng.randrange(1, 60)] + data[end:]
        case _:
            return data[:start] + rng.choice(pieces) + data[end:]


def rearranged(data: bytes, rng: Random, others: Sequence[bytes], fresh: Callable[[Random], bytes]) -> bytes:
    """Bytes after one change of their lines: one removed, doubled, moved, made anew or taken from another input."""
    lines = data.split(b"\n")
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(7):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case 2:
            lines[at], lines[to] = lines[to], lines[at]
        case 3 if others:
            lines[at:at] = rng.choice(others).split(b"\n")
        case 4 if others:
            lines[at] = rng.choice(rng.choice(others).split(b"\n"))
        case 5:
            lines[at] = fresh(rng)
        case _:
            lines.insert(at, fresh(rng))
    return b"\n".join(lines)
