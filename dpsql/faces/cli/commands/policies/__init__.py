"""`dpsql policy …`: for whoever writes, reviews or answers for a policy."""
