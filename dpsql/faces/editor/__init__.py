"""What an editor or a prompt shows while SQL is typed: completion, hover, diagnostics, quick fixes.

`completion`, `hover` and what they stand on read texts and the policy alone; only `server` knows of a protocol.
"""
