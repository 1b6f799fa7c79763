"""GoogleSQL's spelling of differential privacy."""
