"""psql at a server, the README's picture of it: `python -m docs.served` writes docs/images/served.svg. It needs psql.

psql runs in a pseudo-terminal and asks the clinic of `make serve`; what is drawn is what it prints. The noise is new
each time, so `make generate` leaves the picture alone; a test asks again and compares all but the noisy numbers.
"""

from __future__ import annotations

import math
import os
import re
import secrets
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

import pexpect

from docs.answer import card

TARGET = Path(__file__).resolve().parent / "images" / "served.svg"
INPUTS = (
    "SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY n;",
    "SELECT MAX(age) FROM patients;",
    "SELECT epsilon_spent, epsilon_left FROM dpsql.budget;",
)
PROMPT = "clinic=> "
WORDS = re.compile(r"\b(SELECT|FROM|GROUP BY|ORDER BY|AS|COUNT|MAX)\b")
NOISY = re.compile(r"(?<=\| )( *\d+)$")
MARGIN, LINE, LETTER = 24, 20, 8.8
"""LETTER: how wide one is at most, in any of the fonts of STYLE."""
STYLE = """\
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #1f2328 }
text { white-space: pre } .word { fill: #0550ae } .noise, .notice { fill: #953800 } .error { fill: #cf222e }
.say, .prompt { fill: #59636e } .card { fill: #f6f8fa; stroke: #d1d9e0 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .word { fill: #79c0ff } .noise, .notice { fill: #ffa657 } .error { fill: #ff7b72 }
.say, .prompt { fill: #9198a1 } .card { fill: #151b23; stroke: #3d444d } }"""


def record(folder: Path) -> list[str]:
    """The lines of a session with psql, at a clinic of its own, made in an empty folder."""
    dpsql = [sys.executable, "-m", "dpsql"]
    password = secrets.token_hex(8)
    subprocess.run([*dpsql, "demo", "clinic"], cwd=folder, check=True, capture_output=True, timeout=600)
    added = [*dpsql, "user", "add", "bea"]
    users = subprocess.run(added, cwd=folder, check=True, capture_output=True, input=password, text=True, timeout=600)
    defaults = "    defaults: {epsilon: 0.1}\n"
    (folder / "clinic" / "users.yaml").write_text(f"users:\n{users.stdout.rstrip()}\n{defaults}", encoding="utf-8")
    serve = [*dpsql, "serve", "clinic/clinic.yaml", "--port", "0"]
    with subprocess.Popen(serve, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            ready = re.search(r"127\.0\.0\.1:(\d+)", server.stdout.readline())
            assert ready is not None
            return _session(int(ready[1]), password)
        finally:
            server.terminate()


def _session(port: int, password: str) -> list[str]:
    own = {"PGPASSWORD": password, "LC_ALL": "C.UTF-8", "PAGER": "", "TERM": "dumb", "PGCLIENTENCODING": "UTF8"}
    address = f"host=127.0.0.1 port={port} user=bea dbname=clinic"
    child = pexpect.spawn(
        "psql", ["-X", "-n", "-q", address], env={**os.environ, **own}, encoding="utf-8", timeout=600,
        dimensions=(60, 200), echo=False,
    )  # fmt: skip
    child.expect_exact(PROMPT)
    lines: list[str] = []
    for sql in INPUTS:
        child.sendline(sql)
        child.expect_exact(PROMPT)
        lines += [""] if lines and lines[-1] else []
        lines += [PROMPT + sql, *(line.rstrip() for line in str(child.before).splitlines())]
    child.sendline(r"\q")
    child.expect(pexpect.EOF)
    child.close()
    while not lines[-1]:
        lines.pop()
    return lines


def svg(lines: list[str]) -> str:
    """A session as a picture, for light and dark pages."""
    high = LINE * len(lines) + 2 * MARGIN - 6
    words = "psql: a query answered with its price and ±, a refusal with its place and repair, and the budget"
    texts = [
        f'<text x="{MARGIN}" y="{MARGIN + 12 + LINE * i}"{_look(line)}>{_marked(line)}</text>'
        for i, line in enumerate(lines)
        if line
    ]
    return card(wide(lines), high, words, STYLE, texts)


def wide(lines: list[str]) -> int:
    """What no line reaches beyond."""
    return 2 * MARGIN + math.ceil(LETTER * max(map(len, lines)))


def _look(line: str) -> str:
    kinds = {"NOTICE:": "notice", "ERROR:": "error", "DETAIL:": "say", "nothing was": "say", "(": "say"}
    kind = next((kind for start, kind in kinds.items() if line.startswith(start)), "")
    return f' class="{kind}"' if kind else ""


def _marked(line: str) -> str:
    if line.startswith(PROMPT):
        sql = WORDS.sub(r'<tspan class="word">\1</tspan>', escape(line.removeprefix(PROMPT)))
        return f'<tspan class="prompt">{escape(PROMPT)}</tspan>{sql}'
    return NOISY.sub(r'<tspan class="noise">\1</tspan>', escape(line))


def without_noise(picture: str) -> str:
    """A picture without its noisy numbers, and without the order that they give to rows."""
    found = re.sub(r'<tspan class="noise">[^<]*</tspan>', "N", picture)
    return "\n".join(sorted(re.sub(r' y="\d+"', "", line) for line in found.splitlines()))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        TARGET.write_text(svg(record(Path(folder))), encoding="utf-8")
    print(f"wrote {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
