"""From sensitivity to noise: calibration, mechanisms, partition selection, and what they cost."""
