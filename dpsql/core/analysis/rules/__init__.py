"""The rule of each operator: from the facts of its inputs to those of its rows."""
