"""What the trusted core knows of each kind of component: one file each, and one table."""
