"""The examples on pages of diagnostics that need data, a ledger or a command line are executed, too.

`python` blocks find a connection `con` to a small clinic; a `yaml budgets` block of the page stands for the defaults
and budgets of its policy. `sh` blocks hold `dpsql` commands and files, written with `cat > NAME <<'END'`, in a folder
with the policy `clinic.yaml` and its data `clinic.duckdb`. What stays `text` cannot be shown by an example that always
fails.
"""

from __future__ import annotations

from dpsql.diagnostics.codes import CODES
from tests.meta.test_pages import read_example

LANGUAGE = {code: read_example(code).language for code in CODES}
# A search that finds nothing, a public table that changes between planning and running,
# what a server's logins meet, an engine or dpsql itself that fails, a package that is not installed, a shell's command.
TEXT = {"DP212", "DP409", "DP413", "DP414", "DP415", "DP416", "DP901", "DP904", "DP905", "DP906"}


def test_only_what_must_be_described_is_described() -> None:
    assert {code for code, language in LANGUAGE.items() if language == "text"} == TEXT
