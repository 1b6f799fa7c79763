"""PEP 249 over a session: connections, cursors, type objects; and the SQLAlchemy dialect `dpsql://`."""
