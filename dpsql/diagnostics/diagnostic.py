"""What a refusal is made of: where (Span in a Source), what (code, message), and how to repair it (help)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from dpsql.core.value_classes import value


@value(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of character offsets, `[start, end)`, in one Source's text."""

    start: int
    end: int

    def hull(self, other: Span) -> Span:
        """The smallest span that holds both."""
        return Span(min(self.start, other.start), max(self.end, other.end))

    def moved(self, by: int) -> Span:
        """The same characters, where `by` others stand before the text."""
        return Span(self.start + by, self.end + by)


@dataclass(frozen=True, slots=True)
class Source:
    """A text that diagnostics point into: a SQL string, a `.sql` file or a policy file.

    `name` is what is printed before the line number: a path as the user gave it, or `<sql>`.
    """

    text: str
    name: str = "<sql>"

    def position(self, offset: int) -> tuple[int, int]:
        """1-based (line, column) of a character offset."""
        before = self.text[:offset]
        line = before.count("\n") + 1
        return line, offset - (before.rfind("\n") + 1) + 1

    def line(self, number: int) -> str:
        """The text of a 1-based line, without its line end."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 1 <= number <= len(lines) else ""


class Mark(Enum):
    """What a program asks of a finding or a reason, beside its code: its texts are for people."""

    ZERO_DIVISOR = "a quotient has no bounds"
    OVERFLOW = "a value may exceed every DOUBLE"
    UNSEARCHED = "bounds are left to a search where nothing is searched"
    SAYS_CHARGE = "the notes say what was charged, or that nothing was"
    BACKTICKS = "names stand in backticks"
    TOP = "TOP stands in place of LIMIT"
    RECURSIVE = "a WITH RECURSIVE, of which perhaps no query reads itself"
    ORDER_WITHIN = "an order among what an aggregate reads"
    ORDER_OF_ROWS = "an order of private rows"
    PERHAPS_TEXT = "a name that is compared, and may be a text"
    NO_VALUE = "no value was given for a parameter"
    LISTED = "no repair is known but the list of what is accepted"
    DECLARABLE = "a policy can declare what is asked for as a column"


class ForCustodian(str):
    """A repair that is the custodian's, whom it names to everybody else. own: in words for himself."""

    own: str

    def __new__(cls, own: str) -> ForCustodian:
        made = super().__new__(cls, f"custodian: {own}")
        made.own = own
        return made

    def __getnewargs__(self) -> tuple[str]:
        return (self.own,)


@value(frozen=True, slots=True)
class Reason:
    """Why a bound is infinite: the rule that lost it and the place in the query that asked for it.

    `code` is the diagnostic to print when the infinite bound is needed; `help` names the repairs.
    """

    code: str
    message: str
    span: Span | None = None
    label: str = ""
    help: tuple[str, ...] = ()
    mark: Mark | None = None

    def at(self, span: Span | None) -> Reason:
        """The same reason, at this place unless it has one."""
        if self.span is not None:
            return self
        return Reason(self.code, self.message, span, self.label, self.help, self.mark)


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `text` where `span` is: an empty span inserts, an empty text deletes."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A repair that a program can make: `edits`, which do not overlap, in the source of their diagnostic.

    `message` says in a few words what the repair does. A `safe` fix leaves the meaning as it is: on any database the
    text after it has the rows of the text before it, wherever that had an answer at all. Any other fix is a guess at
    what was meant: a person has to confirm it.
    """

    message: str
    edits: tuple[Edit, ...]
    safe: bool = False

    def moved(self, by: int) -> Fix:
        """The same repair where the text stands `by` characters further on, as part of a longer one."""
        return replace(self, edits=tuple(Edit(edit.span.moved(by), edit.text) for edit in self.edits))


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: code, message, place and repair. Rendering is in `render.py`.

    `label` stands under the caret, `help` lines name repairs, `notes` add facts. `severity` is "error" or "warning".
    `fix` is a repair that a program can make, its places counted in `source`. `mark`, `meant`: what programs ask of it;
    the latter are the names that were perhaps meant, the likeliest first.
    """

    code: str
    message: str
    source: Source | None = None
    span: Span | None = None
    label: str = ""
    help: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    severity: str = "error"
    fix: Fix | None = None
    mark: Mark | None = field(default=None, compare=False)
    meant: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def from_reason(cls, reason: Reason, source: Source | None = None) -> Diagnostic:
        """Print the reason for an infinite bound."""
        return cls(reason.code, reason.message, source, reason.span, reason.label, reason.help)

    def at(self, source: Source) -> Diagnostic:
        """The same finding, pointing into `source`, unless it already points somewhere."""
        return self if self.source is not None else replace(self, source=source)

    def within(self, source: Source, by: int) -> Diagnostic:
        """The same finding in `source`, in which the text it was found in starts at offset `by`."""
        span = None if self.span is None else self.span.moved(by)
        return replace(self, source=source, span=span, fix=None if self.fix is None else self.fix.moved(by))
