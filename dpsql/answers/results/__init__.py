"""An answer as people hold it: rows, frames, HTML, plots."""
