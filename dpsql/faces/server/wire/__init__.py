"""PostgreSQL's protocol as bytes: messages, values, and the proof of a password. Nothing here reads or waits."""
