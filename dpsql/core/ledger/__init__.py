"""What has been spent: charged durably before anything is drawn."""
