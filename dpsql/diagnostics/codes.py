"""Every diagnostic code, one line each. A code has a page in `pages/`, a place that raises it and a test.

DP0xx policy and syntax · DP1xx outside the accepted SQL · DP2xx unbounded sensitivity · DP3xx group keys ·
DP4xx budget · DP5xx utility warnings · DP9xx housekeeping.
A published code never changes its meaning and is never reused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Code:
    """One line of the table. `slug` is the tail of the page's file name, `title` its heading."""

    code: str
    slug: str
    title: str

    @property
    def page(self) -> str:
        """The file name of the page in `dpsql/diagnostics/pages/`."""
        return f"{self.code}-{self.slug}.md"


# fmt: off
_TABLE: Final[tuple[Code, ...]] = (
    Code("DP001", "policy-unreadable", "the policy file cannot be read"),
    Code("DP002", "policy-not-yaml", "the policy is not valid YAML"),
    Code("DP003", "policy-invalid", "the policy is invalid"),
    Code("DP004", "policy-data-disagree", "the policy and the data disagree"),
    Code("DP005", "column-type-unknown", "the type of a column is not known"),
    Code("DP006", "data-cannot-be-opened", "the data cannot be opened"),
    Code("DP007", "null-unsaid", "a list of groups does not say whether NULL is one"),
    Code("DP008", "prepared-tables-missing", "there are no prepared tables of the data as it is"),
    Code("DP009", "users-invalid", "the file of users is invalid"),
    Code("DP010", "sql-syntax", "the SQL cannot be parsed"),
    Code("DP011", "not-one-statement", "not exactly one statement"),
    Code("DP012", "not-a-query", "the statement is not a query"),
    Code("DP013", "parameters", "a parameter is missing or unused"),
    Code("DP014", "privacy-clause", "the privacy clause or the bounds of an aggregate are not accepted"),
    Code("DP015", "policy-in-doubt", "the policy is valid, and may not say what is meant"),
    Code("DP016", "policy-is-a-draft", "the policy is a draft"),
    Code("DP017", "no-closed-period", "no period is closed that the query could read"),
    Code("DP101", "outside-accepted-sql", "a construct outside the accepted SQL"),
    Code("DP102", "unknown-table", "unknown table"),
    Code("DP103", "unknown-column", "unknown column"),
    Code("DP104", "ambiguous-column", "ambiguous column"),
    Code("DP105", "unknown-function", "unknown function"),
    Code("DP106", "wrong-arguments", "wrong arguments for a function"),
    Code("DP107", "name-shadows-table", "a name shadows a table"),
    Code("DP108", "aggregate-not-allowed-here", "an aggregate is not allowed here"),
    Code("DP109", "neither-grouped-nor-aggregated", "a column is neither grouped nor aggregated"),
    Code("DP110", "private-rows", "the query would return private rows"),
    Code("DP111", "subquery", "a subquery in a place or of a form that no join can stand for"),
    Code("DP112", "order-or-limit-below-release", "ORDER BY or LIMIT over private rows"),
    Code("DP113", "window-over-private-rows", "a window function over private rows"),
    Code("DP114", "volatile-function", "a volatile function"),
    Code("DP115", "argument-not-literal", "an argument must be a literal"),
    Code("DP116", "join-condition", "this join condition is not supported"),
    Code("DP117", "join-key-types", "join keys of different types"),
    Code("DP118", "join-kind", "this kind of join is not supported"),
    Code("DP119", "dialect-meaning", "a construct that may mean something else in this dialect"),
    Code("DP120", "totals-do-not-add-up", "totals that would not be the sums of their parts"),
    Code("DP201", "no-bounds", "an aggregated value has no bounds"),
    Code("DP202", "bounds-lost", "an expression loses the bounds of its columns"),
    Code("DP203", "not-numeric", "the aggregate needs a numeric argument"),
    Code("DP204", "clip-outside-bounds", "a CLIP leaves one value"),
    Code("DP210", "join-multiplicity", "a join may multiply private rows without limit"),
    Code("DP211", "no-row-limit", "no limit on the rows of one privacy unit"),
    Code("DP212", "nothing-found", "a search found no limit"),
    Code("DP213", "search-refused", "the policy refuses searches"),
    Code("DP214", "grid-saturates", "the resolution of a column is too fine for its bounds to be searched"),
    Code("DP220", "unit-lost", "the privacy unit is lost"),
    Code("DP230", "private-join", "a join of private tables whose effect has no bound"),
    Code("DP301", "not-a-group-key", "a column cannot be a group key"),
    Code("DP302", "too-many-public-keys", "too many public group keys"),
    Code("DP303", "group-keys-not-public", "group keys are private where public ones are demanded"),
    Code("DP304", "values-not-listed", "a value to choose is in no public list"),
    Code("DP305", "no-group-could-be-shown", "no group could have as many units as are needed to show it"),
    Code("DP401", "no-epsilon", "no epsilon was given"),
    Code("DP402", "delta-needed", "the query needs a delta"),
    Code("DP403", "total-budget-exhausted", "the total budget is exhausted"),
    Code("DP404", "analyst-budget-exhausted", "the analyst's budget is exhausted"),
    Code("DP405", "above-per-query-limit", "the query costs more than one query may"),
    Code("DP406", "invalid-privacy-parameter", "an invalid privacy parameter"),
    Code("DP407", "ledger-unusable", "the ledger cannot be used"),
    Code("DP408", "private-keys-under-pure-dp", "private group keys are impossible under pure DP"),
    Code("DP409", "public-facts-changed", "a public table changed after planning"),
    Code("DP410", "noise-scale-out-of-range", "the noise scale is out of range"),
    Code("DP411", "error-not-plannable", "the named column has no noise that could be planned"),
    Code("DP412", "above-check-limit", "the queries ask for more than the check allows"),
    Code("DP413", "login-ceiling", "a login's ceiling is reached"),
    Code("DP414", "server-busy", "the server has no room for more"),
    Code("DP415", "answer-too-large", "the answer has more rows than the server gives"),
    Code("DP416", "too-many-failures", "too many statements failed in the engine"),
    Code("DP501", "error-exceeds-value", "the expected error exceeds the largest possible value"),
    Code("DP502", "limits-discard-most", "limits discard most of what is counted"),
    Code("DP503", "epsilon-too-small-for-groups", "epsilon is too small for the number of groups"),
    Code("DP504", "average-of-few-rows", "an average over very few rows"),
    Code("DP505", "value-not-listed", "a column is compared with a value that the policy does not list"),
    Code("DP506", "limit-found-at-run-time", "a limit is found when the query runs"),
    Code("DP507", "quantile-of-few-rows", "a quantile or MODE of very few rows"),
    Code("DP508", "duration-bounds", "durations with the bounds of both of their ends"),
    Code("DP901", "engine-failed", "the engine failed"),
    Code("DP902", "unused-ignore", "an ignore comment that ignores nothing, or a comment that sets nothing"),
    Code("DP903", "usage", "a command, option or call was used wrongly"),
    Code("DP904", "internal-error", "dpsql itself failed"),
    Code("DP905", "noise-backend-missing", "the policy's source of noise is not installed"),
    Code("DP906", "shell-command-refused", "a command of the shell that is refused"),
    Code("DP910", "configuration-invalid", "the configuration of the check is invalid"),
)
# fmt: on

CODES: Final[dict[str, Code]] = {entry.code: entry for entry in _TABLE}
"""Code → its line, in ascending order."""
