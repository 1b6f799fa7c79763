"""The console's pages as pictures: `python -m docs.console` writes docs/images/console-*.png.

A server of the clinic that `dpsql demo` makes is asked in Chromium, as ana asks it. Its noise is new each time, so
`make generate` leaves the pictures alone. It needs dpsql's extras `server` and `clients`, and Chromium.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.browser import chromium

IMAGES = Path(__file__).resolve().parent / "images"
WIDTH = 960
PASSWORD = "for a picture"
SQL = "SELECT region, COUNT(*) AS n, AVG(age) AS mean_age\nFROM patients WHERE age < 65 GROUP BY region"
REFUSED = "SELECT ward, MAX(cost) AS largest FROM visits GROUP BY ward"


def main() -> None:
    """Draw all pictures anew."""
    with tempfile.TemporaryDirectory() as folder:
        _dpsql(folder, "demo", "demo")
        own = _dpsql(folder, "user", "add", "ana", input=PASSWORD)
        policy = Path(folder, "demo", "clinic.yaml")
        policy.with_name("users.yaml").write_text(f"users:\n{own}")
        policy.write_text(policy.read_text() + "serve: {answers_at: [300ms, 5s]}\n")
        with subprocess.Popen(
            [sys.executable, "-m", "dpsql", "serve", str(policy), "--port", "0", "--http", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            try:
                assert server.stdout is not None
                found = re.search(r"http://\S+", server.stdout.readline())
                assert found is not None
                with chromium() as browser:
                    for scheme in ("light", "dark"):
                        _draw(browser, found[0], scheme)
            finally:
                server.terminate()


def _dpsql(folder: str, *arguments: str, input: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "dpsql", *arguments], cwd=folder, input=input, capture_output=True, text=True, check=True
    )
    return done.stdout


def _draw(browser: Any, url: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": WIDTH, "height": 620}, color_scheme=scheme)
    page = context.new_page()

    def picture(name: str, *, below: str) -> None:
        page.evaluate("scrollTo(0, 0)")
        box = page.locator(below).last.bounding_box()
        height = box["y"] + box["height"] + 20
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height}
        page.screenshot(path=str(IMAGES / f"console-{name}.png"), clip=clip, full_page=True)

    page.goto(url)
    page.fill("#name", "ana")
    page.fill("#password", PASSWORD)
    page.click("button[type=submit]")
    for sql, epsilon in (("SELECT COUNT(*) AS n FROM visits", "0.2"), (SQL, "0.1")):
        page.goto(f"{url}query")
        page.fill("#sql", sql)
        page.fill("#epsilon", epsilon)
        page.click("text=Show the price")
        if sql == SQL and scheme == "light":
            picture("price", below="section.price")
        page.click("button.pay")
    page.fill("#sql", REFUSED)
    page.click("text=Show the price")
    if scheme == "dark":
        picture("refused", below="section.refused")
    context.close()


if __name__ == "__main__":
    main()
