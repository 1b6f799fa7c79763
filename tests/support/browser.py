"""The machine's Chromium, driven by playwright, which brings none of its own here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WHERE = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n)) is not None), None)
"""Its path; None where there is none."""
MISSING = "there is no Chromium:  apt-get install chromium"
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=WHERE, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()
