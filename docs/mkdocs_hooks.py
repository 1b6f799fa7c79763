"""What mkdocs has to be told: pages that stand outside of docs/, links that lead out of it, and remarks of code blocks.

On GitHub all links follow the folders of the repository. The site shows each page of docs/ at its own place and brings
in others: pages of diagnostics, the examples, the changelog. A link to one of them leads to its page; a link to any
other file, such as a policy, leads to a copy of it. Nothing is written into docs/.

A fence may say after its language what a test does with the block (`sql DP201`, `sh skip: …`); the site shows what a
refused query is refused with and leaves out the rest.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PROJECT = {f"{page}.md": f"project/{page}.md" for page in ("CHANGELOG", "SECURITY", "GOVERNANCE", "CODE_OF_CONDUCT")}
DEVELOPERS = {
    "CONTRIBUTING.md": "developers/CONTRIBUTING.md",
    "benchmarks/README.md": "developers/benchmarks.md",
    "grammar/README.md": "developers/grammar.md",
    "tests/proofs/README.md": "developers/proofs.md",
}
FOLDERS = {
    "howto": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
    "developers": "For developers",
}
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^(```)(\w+) +([^\n`]+)$", re.MULTILINE)
CODE = re.compile(r"(^```.*?^```[ \t]*$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


def brought() -> dict[str, str]:
    """The pages from outside of docs/: path in the repository → path of the page in the site's sources."""
    found = {f"dpsql/diagnostics/pages/{p.name}": f"diagnostics/{p.name}" for p in _pages("dpsql/diagnostics/pages")}
    for readme in sorted((ROOT / "examples").glob("*/README.md")):
        found[f"examples/{readme.parent.name}/README.md"] = f"examples/{readme.parent.name}/README.md"
    return found | PROJECT | DEVELOPERS


def _pages(folder: str) -> list[Path]:
    return sorted((ROOT / folder).glob("*.md"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation: pages nobody named, diagnostics under their headings, pages from outside of docs/."""
    pages = brought()
    sections = {name: entries for part in config.nav or [] for name, entries in part.items()}
    named = set(_named(config.nav))
    for name, uris in (("Project", PROJECT), ("For developers", DEVELOPERS)):
        sections[name] += uris.values()
    for folder, section in FOLDERS.items():
        sections[section] += [p for p in (f"{folder}/{f.name}" for f in _pages(f"docs/{folder}")) if p not in named]
    parts = {
        name: entries for part in sections["Reference"] if isinstance(part, dict) for name, entries in part.items()
    }
    parts["Promises"] += [
        p for p in (f"reference/promises/{f.name}" for f in _pages("docs/reference/promises")) if p not in named
    ]
    headings = re.findall(r"^## (DP\d)xx: (.+)$", (ROOT / "docs/diagnostics.md").read_text(encoding="utf-8"), re.M)
    codes = [uri for uri in pages.values() if uri.startswith("diagnostics/")]
    for digit, heading in headings:
        parts["Diagnostics"].append(
            {f"{digit}xx {heading}": [u for u in codes if u.startswith(f"diagnostics/{digit}")]}
        )
    sections["Examples"] += [uri for uri in pages.values() if uri.startswith("examples/")]
    return config


def _named(nav: Any) -> list[str]:
    match nav:
        case str():
            return [nav]
        case dict():
            return [name for entry in nav.values() for name in _named(entry)]
        case list():
            return [name for entry in nav for name in _named(entry)]
        case _:
            return []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside, and the files that pages link to."""
    for origin, uri in brought().items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / origin)))
    origins = {uri: origin for origin, uri in brought().items()}
    for page in list(files.documentation_pages()):
        text = page.content_string
        for _, target, _ in LINK.findall(CODE.sub("", text)):
            origin = _origin(origins.get(page.src_uri, f"docs/{page.src_uri}"), target)
            if origin and not origin.startswith("docs/") and (ROOT / origin).is_file() and origin not in brought():
                uri = f"files/{origin}"
                if files.get_file_from_path(uri) is None:
                    copied = InclusionLevel.INCLUDED  # even if its name begins with a dot
                    files.append(File.generated(config, uri, abs_src_path=str(ROOT / origin), inclusion=copied))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Follow links as the repository means them, and put the fences in order."""
    pages = brought()
    here = page.file.src_uri
    origin = {uri: path for path, uri in pages.items()}.get(here, f"docs/{here}")

    def follow(link: re.Match[str]) -> str:
        before, target, after = link.groups()
        path, mark, anchor = target.partition("#")
        meant = _origin(origin, target)
        if meant is None:
            return link[0]
        if (ROOT / meant).is_dir():
            meant = f"{meant}/README.md"
        uri = meant.removeprefix("docs/") if meant.startswith("docs/") else pages.get(meant, f"files/{meant}")
        if not path or files.get_file_from_path(uri) is None:
            return link[0]  # an anchor in this page, or something that mkdocs shall complain of
        return f"{before}{posixpath.relpath(uri, posixpath.dirname(here) or '.')}{mark}{anchor}{after}"

    pieces = CODE.split(markdown)
    pieces[::2] = [LINK.sub(follow, piece) for piece in pieces[::2]]
    return FENCE.sub(_fence, "".join(pieces))


def _origin(page: str, target: str) -> str | None:
    """The path in the repository that a link of `page` means; None if it leads elsewhere, or is an anchor only."""
    path = unquote(target.partition("#")[0])
    if "://" in path or path.startswith("mailto:") or not path:
        return None
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    if meant.startswith("../"):
        raise PluginError(f"{page}: {target} leads out of the repository")
    return meant


def _fence(found: re.Match[str]) -> str:
    opening, language, remark = found.groups()
    if re.fullmatch(r"DP\d{3}", remark.strip()):
        return f'{opening}{language} title="refused: {remark.strip()}"'
    return f"{opening}{language}"
