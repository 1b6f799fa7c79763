"""What other systems' set-ups say, as a policy of ours: each reader gives an `Imported`, which `as_yaml.py` writes."""
