"""What is said without an answer: of queries, without data, and of data, to the custodian."""
