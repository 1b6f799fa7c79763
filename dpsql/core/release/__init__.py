"""From exact integers to noisy numbers."""
