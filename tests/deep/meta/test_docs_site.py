"""The documentation as a site: built with warnings as errors; nothing in it leads nowhere or loads from elsewhere."""

from __future__ import annotations

import ast
import os
import posixpath
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from pymdownx.slugs import slugify

from docs import mkdocs_hooks
from dpsql.diagnostics.codes import CODES

ROOT = Path(__file__).resolve().parents[3]
slug = slugify(case="lower")


@dataclass(slots=True)
class Html(HTMLParser):
    """What a page holds: its anchors, its links, what it loads, and the text of its paragraphs and cells."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    paragraphs: list[str] = field(default_factory=list)
    inside: bool = False
    code: bool = False

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.ids |= {said[name] for name in ("id", "name") if name in said}
        if tag == "a" and "href" in said:
            self.links.append(said["href"])
        if tag == "link" and said.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.loads.append(said["href"])
        self.loads += [said[name] for name in ("src", "srcset", "data") if said.get(name) and tag != "form"]
        if tag in ("p", "td"):
            self.inside = True
            self.paragraphs.append("")
        self.code = self.code or tag == "code"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("p", "td"):
            self.inside = False
        if tag == "code":
            self.code = False

    def handle_data(self, data: str) -> None:
        if self.inside and not self.code:
            self.paragraphs[-1] += data


def pages(site: Path) -> dict[str, Html]:
    """Every page of a built site, by its path in it."""
    found = {}
    for path in sorted(site.rglob("*.html")):
        page = found[path.relative_to(site).as_posix()] = Html()
        page.feed(path.read_text(encoding="utf-8"))
    return found


def broken(site: Path) -> list[str]:
    """Links to nothing, anchors that are not there, and whatever a page would load from elsewhere."""
    wrong = []
    all_pages = pages(site)
    for name, page in all_pages.items():
        for target in page.links + page.loads:
            if re.match(r"[a-z]+:|//", target):
                if target in page.loads and not target.startswith("data:"):
                    wrong.append(f"{name}: loads {target}")
                continue
            path, _, anchor = unquote(target).partition("#")
            meant = path.lstrip("/") if path.startswith("/") else posixpath.join(posixpath.dirname(name), path)
            meant = posixpath.normpath(meant) if path else name
            if (site / meant).is_dir():
                meant = posixpath.normpath(f"{meant}/index.html")
            if not (site / meant).is_file():
                wrong.append(f"{name}: {target}")
            elif anchor and anchor not in all_pages[meant].ids:
                wrong.append(f"{name}: no such anchor in {target}")
    for sheet in site.rglob("*.css"):
        if found := re.search(r"(@import|url\()\s*['\"]?(https?:)?//[^)]*", sheet.read_text(encoding="utf-8")):
            wrong.append(f"{sheet.name}: {found[0]}")
    return wrong


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, built as `make docs` builds it. The variable switches off a notice of the theme's makers."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return target


def test_links_and_anchors_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert len(pages(site)) > 90
    assert broken(site) == []


def test_every_page_is_in_the_navigation(site: Path) -> None:
    shown = {posixpath.normpath(link) for link in pages(site)["index.html"].links if not re.match(r"[a-z]+:|//", link)}
    documents = [p.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for p in (ROOT / "docs").rglob("*.md")]
    assert sorted({name.replace("README", "index") for name in documents} - shown) == []
    codes = [f"diagnostics/{entry.page.removesuffix('.md')}.html" for entry in CODES.values()]
    assert sorted(set(codes) - shown) == []


def left_as_text(page: Html) -> list[str]:
    """Texts in which a line looks like an item of a list, a row of a table or a fence, or that hold a link as text."""
    raw = re.compile(r"^(- |\* |\d+\. |\|.*\||```)|\]\[|\]\(", re.MULTILINE)
    return [text for text in page.paragraphs if raw.search(text)]


def test_no_list_table_or_block_is_left_as_plain_text(site: Path) -> None:
    """Markdown that GitHub takes for a list or a table, and this site does not, for want of an empty line."""
    assert [(name, text[:80]) for name, page in pages(site).items() for text in left_as_text(page)] == []


@pytest.mark.parametrize(
    "text", ["Two:\n- a", "1. a\n2. b", "x\n| a | b |", "``` sh", "[a][b]", "[a](b.md)", "fine - it | is [a]"]
)
def test_markdown_that_was_not_understood_is_noticed(text: str) -> None:
    page = Html()
    page.feed(f"<p>{text}</p>")
    assert bool(left_as_text(page)) == (not text.startswith("fine"))


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ('<a href="other/#there">fine</a><p id="x">1 - 2</p><a href="#x">fine</a>', None),
        ('<a href="nowhere/">lost</a>', "index.html: nowhere/"),
        ('<a href="other/#lost">lost</a>', "index.html: no such anchor in other/#lost"),
        ('<a href="#lost">lost</a>', "index.html: no such anchor in #lost"),
        ('<script src="https://example.org/x.js"></script>', "index.html: loads https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "index.html: loads //example.org/x.css"),
        ('<img src="lost.svg">', "index.html: lost.svg"),
    ],
)
def test_a_site_that_is_wrong_is_noticed(body: str, wrong: str | None, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text('<h2 id="there">There</h2>', encoding="utf-8")
    (tmp_path / "index.html").write_text(body, encoding="utf-8")
    assert broken(tmp_path) == ([wrong] if wrong else [])
    assert len(pages(tmp_path)) == 2


@pytest.mark.parametrize(
    ("page", "target", "meant"),
    [
        ("docs/tutorial.md", "howto/write-a-policy.md#x", "docs/howto/write-a-policy.md"),
        ("docs/howto/a.md", "../../examples/flights/flights.yaml", "examples/flights/flights.yaml"),
        ("CHANGELOG.md", "docs/index.md", "docs/index.md"),
        ("docs/a.md", "#anchor", None),
        ("docs/a.md", "https://example.org/a.md", None),
        ("docs/a.md", "mailto:a@example.org", None),
    ],
)
def test_a_link_means_what_it_means_in_the_repository(page: str, target: str, meant: str | None) -> None:
    assert mkdocs_hooks._origin(page, target) == meant


def test_remarks_of_fences_are_for_tests_only() -> None:
    text = "```sh skip: because\nx\n```\n```sql DP201\nSELECT 1\n```\n```yaml fragment\na: 1\n```\n```text\nx\n```\n"
    lines = [line for line in mkdocs_hooks.FENCE.sub(mkdocs_hooks._fence, text).splitlines() if line[3:]]
    assert [line for line in lines if line.startswith("```")] == [
        "```sh",
        '```sql title="refused: DP201"',
        "```yaml",
        "```text",
    ]


def test_the_site_is_built_with_what_documentation_needs_and_no_more(tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    arguments = ["make", "--dry-run", "--always-make", "docs", f"VENV={tmp_path}/fresh"]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"pip install .*", done.stdout) == [
        "pip install --quiet --disable-pip-version-check -e '.[docs]'"
    ]
    hooks = ast.parse((ROOT / "docs" / "mkdocs_hooks.py").read_text(encoding="utf-8"))
    imported = {n.module for n in ast.walk(hooks) if isinstance(n, ast.ImportFrom)}
    imported |= {alias.name for n in ast.walk(hooks) if isinstance(n, ast.Import) for alias in n.names}
    roots = {str(name).partition(".")[0] for name in imported}
    assert roots - sys.stdlib_module_names == {"mkdocs"}


def headings(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a document."""
    text = re.sub(r"^```.*?^```[ \t]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", h) for h in re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE))
    return {slug(heading, "-") for heading in plain}


def test_anchors_of_links_are_headings_on_github_too() -> None:
    """The site's own check sees docs/ only; README and the pages beside it are read on GitHub."""
    wrong = []
    names = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*/README.md")]
    for path in names:
        text = path.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
            document = (path.parent / target) if target else path
            if "://" in target or document.suffix != ".md":
                continue
            if anchor not in headings(document.read_text(encoding="utf-8")):
                wrong.append(f"{path.relative_to(ROOT)}: {target}#{anchor}")
    assert wrong == []
    assert headings("# A b\n\n## `C` of ε\n") == {"a-b", "c-of-ε"}
