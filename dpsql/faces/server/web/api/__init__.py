"""The JSON API of a server, version 1."""
