"""The shell at work, recorded from the real program: `python -m docs.recording` writes docs/images/shell.svg.

The program runs in a pseudo-terminal, on the clinic that `dpsql demo` makes; what is drawn is the screen that a person
would see. Its noise is new each time, so `make generate` leaves the picture alone; a test records again and compares
all but the noisy numbers.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from html import escape, unescape
from pathlib import Path

import pyte

from tests.support.terminal import Terminal

TARGET = Path(__file__).resolve().parent / "images" / "shell.svg"
COLUMNS, LINES = 96, 44
INPUTS = (
    "SELECT region, COUNT(*) AS n, AVG(age) AS age\nFROM patients GROUP BY region;",
    "SELECT MAX(cost) AS largest FROM visits;",
    "\\cost SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "SELECT AVG(age) AS mean, COUNT(*) AS n, region\nFROM patients GROUP BY region;",
)
WIDTH, HEIGHT = 7.3, 17
"""Of a character cell in the picture, in pixels."""
COLOURS = {
    "default": "#e6edf3", "black": "#8b949e", "red": "#ff7b72", "green": "#7ee787", "brown": "#d29922",
    "blue": "#79c0ff", "magenta": "#d2a8ff", "cyan": "#76e3ea", "white": "#e6edf3",
}  # fmt: skip
TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')


def record(folder: Path) -> pyte.Screen:
    """The screen after all inputs, in a shell on a clinic of its own in an empty folder."""
    command = [sys.executable, "-m", "dpsql", "demo", "clinic"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
    arguments = ["clinic/clinic.yaml", "--analyst", "ana", "--epsilon", "0.2", "--ledger", "shell.sqlite"]
    with Terminal(arguments, folder, columns=COLUMNS, lines=LINES) as terminal:
        terminal.wait_for_prompt()
        for text in INPUTS:
            terminal.ask(text)
        screen = pyte.Screen(COLUMNS, LINES)
        pyte.Stream(screen).feed(terminal.raw)
        assert terminal.leave() == 0
    return screen


def svg(screen: pyte.Screen) -> str:
    """A screen as a picture, one text for each run of equal colour."""
    used = len("\n".join(screen.display).rstrip().splitlines())
    wide, high = round(COLUMNS * WIDTH + 32), used * HEIGHT + 32
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        'role="img" '
        'aria-label="The shell: an answer, a refusal with its repair, a price, an answer given again for nothing">',
        f'<rect width="{wide}" height="{high}" rx="8" fill="#0d1117"/>',
        '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12" xml:space="preserve">',
        "<style>text { white-space: pre }</style>",  # browsers of today do not know xml:space
    ]
    for row in range(used):
        cells = [screen.buffer[row][column] for column in range(COLUMNS)]
        column = 0
        while column < COLUMNS:
            end = column
            while end < COLUMNS and _look(cells[end]) == _look(cells[column]):
                end += 1
            text = "".join(cell.data for cell in cells[column:end])
            if text.strip():
                colour, bold = _look(cells[column])
                kept = text.rstrip()
                x, y = 16 + column * WIDTH, 16 + HEIGHT * (row + 0.75)
                length = f'textLength="{len(kept) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
                weight = ' font-weight="600"' if bold else ""
                parts.append(f'<text x="{x:.1f}" y="{y:.2f}" {length} fill="{colour}"{weight}>{escape(kept)}</text>')
            column = end
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _look(cell: pyte.screens.Char) -> tuple[str, bool]:
    colour = cell.fg if cell.fg in COLOURS or not re.fullmatch(r"[0-9a-f]{6}", cell.fg) else f"#{cell.fg}"
    return COLOURS.get(colour, colour if colour.startswith("#") else COLOURS["default"]), cell.bold


def pattern(picture: str) -> list[str]:
    """The lines of a picture without what noise changes: numbers, and the spaces and dashes around them."""
    lines: dict[str, str] = {}
    for x, y, text in TEXT.findall(picture):
        lines[y] = lines.get(y, "").ljust(round((float(x) - 16) / WIDTH)) + unescape(text)
    return [_without_noise(line) for line in lines.values()]


def _without_noise(line: str) -> str:
    line = re.sub(r"-?[\d,]+(\.\d+)? ± [\d,]+(\.\d+)?", "N", re.sub(r"\s+", " ", line).strip())
    return re.sub(r"from \d{4}-\d\d-\d\d", "from DAY", re.sub(r"-{3,}", "--", line))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        TARGET.write_text(svg(record(Path(folder))), encoding="utf-8")
    print(f"wrote {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
