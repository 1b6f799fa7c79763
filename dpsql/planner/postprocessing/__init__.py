"""From noisy numbers to the rows of an answer and their intervals: public arithmetic."""
