"""`dpsql serve`: analysts connect as to PostgreSQL, and the custodian's process answers."""
