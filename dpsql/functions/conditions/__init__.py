"""Functions that say whether something holds, and those that choose by it."""
