"""Functions as engines spell them. Each printed text passes the gate of the core before it enters a statement."""
