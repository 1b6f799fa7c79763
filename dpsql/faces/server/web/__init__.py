"""The console and the JSON API: another door beside the wire, over the same interface. It has no data either."""
