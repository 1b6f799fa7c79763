"""`dpsql check --dbt DIR`: the models of a compiled project in place of files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from dpsql.faces.check.documents.dbt import read_models
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.examine.check_settings import CheckSettings
from dpsql.faces.check.examine.run_check import load


def read_dbt(paths: Sequence[str], settings: CheckSettings) -> tuple[CheckSettings, list[Document]]:
    """The models below the paths, and the settings with the dialect of their warehouse.

    Raises CannotOpen for the policy, Rejected DP903 for the project.
    """
    making = settings.making
    assert making.dbt is not None
    found = read_models(making.dbt, load(settings), making.dialect, making.tables)
    wanted = [os.path.realpath(path) for path in paths]
    # The default, the current folder, stands for the whole project, wherever that lies.
    everything = list(paths) == ["."]
    documents = [d for d in found.documents if everything or _is_below(os.path.realpath(d.name), wanted)]
    return replace(settings, options=replace(settings.options, dialect=found.dialect)), documents


def _is_below(path: str, wanted: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in wanted)
