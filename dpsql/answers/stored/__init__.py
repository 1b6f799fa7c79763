"""Released answers: noisy numbers that were paid for, kept to be given again for nothing."""
