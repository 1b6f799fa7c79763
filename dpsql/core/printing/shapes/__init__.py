"""The statements that fetch the exact integers of a release."""
