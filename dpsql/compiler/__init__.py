"""The pipeline: SQL text + policy + public facts → Plan. No data, no engine, no randomness."""

from dpsql.compiler.compile import charges_of, compile_query
from dpsql.compiler.plan import Plan, PlannedRelease, PostProcessing
from dpsql.compiler.settings import Settings

__all__ = ["Plan", "PlannedRelease", "PostProcessing", "Settings", "charges_of", "compile_query"]
