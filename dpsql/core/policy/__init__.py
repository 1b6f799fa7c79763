"""What the custodian declares, resolved and checked: values without any reading of files."""
