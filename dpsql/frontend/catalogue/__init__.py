"""A client's question about the schema, in PostgreSQL's SQL, as DuckDB's SQL over relations and functions of ours.

`question.py` reads one; `known.py` lists what may stand in it. What is not on a list is refused, never guessed.
"""
