"""What is checked: files, dbt models, templates, commits, each as SQL with its places."""
