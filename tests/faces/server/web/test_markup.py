"""Whatever is text is escaped."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.faces.server.web.markup import h, page
from dpsql.faces.server.web.pages.reference import from_markdown


class Read(HTMLParser):
    """Tags with their attributes, and all text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@settings(derandomize=True, max_examples=300)
@given(st.text() | st.sampled_from(["<script>", "</p>", "&lt;", '"><i x="', "'", "<!--", "]]>", "\u202e", "\x00"]))
def test_text_and_attributes_come_back_as_text(text: str) -> None:
    read = Read()
    read.feed(str(h.p(text, ["x", (text, None)], title=text, class_="a", hidden=False, open=True)))
    read.close()
    shown = "".join(
        "\ufffd" if not c.isprintable() and c not in "\n\t" and c in read.text + "\ufffd" else c for c in text
    )
    assert [tag for tag, _ in read.tags] == ["p"] and set(read.tags[0][1]) == {"title", "class", "open"}
    if text.isprintable():
        assert read.text == f"{text}x{text}" and read.tags[0][1]["title"] == text == shown


def test_a_document_is_one() -> None:
    made = page(
        h.html(h.head(h.meta(charset="utf-8")), h.body(h.br(), h.textarea("\nx"), 5, None, "é\ud800"), lang="en")
    )
    assert made == (
        b'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"></head><body><br><textarea>\n\nx</textarea>5'
        b"\xc3\xa9\xef\xbf\xbd</body></html>\n"
    )


def test_markdown_is_text_and_known_elements() -> None:
    made = str(
        h.div(from_markdown("## A\n\nb `c<d>` <i>e</i> [f](DP201-x.md) [g](javascript:x)\n\n- h\n\n```sql\ni<j\n```\n"))
    )
    assert "<h2>A</h2>" in made and "<code>c&lt;d&gt;</code>" in made and "&lt;i&gt;" in made
    assert '<a href="/codes/DP201">f</a>' in made and "javascript" not in made.replace("[g](javascript:x)", "")
    assert "<li>" in made and "i&lt;j" in made
