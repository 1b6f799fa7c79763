"""Documentation, and the scripts that make the parts of it that come from the code."""
