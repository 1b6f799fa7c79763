"""One file for one aggregate: what it binds, what it measures, and how released numbers become the answer."""
