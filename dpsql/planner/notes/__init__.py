"""What is said beside a plan: notes, and refusals that are known before anything is paid."""
