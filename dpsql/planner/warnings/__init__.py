"""What speaks against running a query, from declared numbers alone (DP5xx)."""
