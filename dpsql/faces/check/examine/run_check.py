"""Documents → a report: what is known from before, what is examined now, in one process or several, in one order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.faces.check.documents.checkout import load_own
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.examine.cache import Cache
from dpsql.faces.check.examine.check_settings import CheckSettings
from dpsql.faces.check.examine.examination import Examination
from dpsql.faces.check.examine.examine_text import findings_of
from dpsql.faces.check.report.baseline import Baseline, KnownFinding
from dpsql.faces.check.report.finding import Finding, Report


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """A report, the examinations it was made from (for prices), and what of a baseline does not occur any more."""

    report: Report
    examined: tuple[tuple[Document, Examination], ...]
    gone: tuple[tuple[KnownFinding, int], ...] = ()


def check_documents(
    documents: Sequence[Document],
    settings: CheckSettings,
    unreadable: Sequence[Diagnostic] = (),
    baseline: Baseline | None = None,
) -> CheckOutcome:
    """Check every document. unreadable: what could not be read to become one.

    Raises CannotOpen if the policy cannot be loaded, Rejected DP903 for an unknown dialect, DP904 if a process is lost.
    """
    found = examine_documents(documents, settings)
    examined: list[tuple[Document, Examination]] = []
    findings: list[Finding] = []
    failed: list[Diagnostic] = []
    for document in documents:
        examination = found.get(document.text)
        if examination is None:
            failed.append(_failed(document))
        else:
            examined.append((document, examination))
            findings += findings_of(document, examination, settings.options)
    statements = sum(len(examination.statements) for _, examination in examined)
    report = Report(
        tuple(findings),
        len(documents),
        statements,
        (*unreadable, *failed),
        names=tuple(document.name for document in documents),
    )
    if baseline is None:
        return CheckOutcome(report, tuple(examined))
    compared = baseline.compared(findings, [document.name for document, _ in examined])
    report = replace(report, findings=compared.new, known=compared.known)
    selection = settings.options.selection
    gone = (  # what this run does not show may occur all the same
        (known, count)
        for known, count in compared.gone
        if selection.shows(known.code, selection.hidden_in(str(baseline.folder / known.path)))
    )
    return CheckOutcome(report, tuple(examined), tuple(gone))


def examine_documents(documents: Sequence[Document], settings: CheckSettings) -> dict[str, Examination]:
    """Text → its examination, for every text but those on which dpsql itself failed."""
    texts = list(dict.fromkeys(document.text for document in documents))
    content = _content(settings.policy)
    cache = None
    if settings.cache is not None and content is not None and not _is_foreign(settings.cache):
        options = settings.options
        cache = Cache(settings.cache, content, settings.policy, options.dialect, options.parameters, options.search)
    found = {} if cache is None else cache.find(texts)
    missing = [text for text in texts if text not in found]
    if missing or not found:  # with nothing to examine, policy and dialect are still looked at
        made = _examine(missing, settings)
        if cache is not None and content == _content(settings.policy):
            cache.keep(made, found)
        found.update(made)
    return found


def _is_foreign(folder: Path) -> bool:
    """Whether a cache came with the repository: whoever can commit a file could then hide what is found in others."""
    from dpsql.faces.check.documents.repository import is_tracked

    return folder.exists() and is_tracked(folder)


def _examine(texts: Sequence[str], settings: CheckSettings) -> dict[str, Examination]:
    from dpsql.faces.check.examine.parallel import examine_all
    from dpsql.frontend.parse import require_dialect

    require_dialect(settings.options.dialect)
    options = settings.options
    results = examine_all(
        texts, load(settings), options.dialect, settings.jobs, parameters=options.parameters, search=options.search
    )
    return {text: result for text, result in zip(texts, results, strict=True) if result is not None}


def load(settings: CheckSettings) -> Policy:
    """The policy. Raises CannotOpen."""
    return load_own(settings.policy, settings.root, draft=settings.draft)


def _content(policy: str) -> bytes | None:
    """The policy file's bytes; None if it cannot be read, which loading it will say."""
    try:
        return Path(policy).read_bytes() if os.path.isfile(policy) else None
    except (OSError, ValueError):
        return None


def _failed(document: Document) -> Diagnostic:
    return Diagnostic(
        "DP904",
        f"dpsql itself failed on {document.name}; this is an error in dpsql",
        document.source,
        help=("report the query and the policy, without data",),
    )
