"""Scalar functions: types, intervals of their values, totality and NULLs, one family a file.

They lie outside of the trusted core, which is handed what they mean here, when the first of them is imported.
"""

from dpsql.core.values.meaning import hand_in
from dpsql.functions import meant

hand_in(meant)
