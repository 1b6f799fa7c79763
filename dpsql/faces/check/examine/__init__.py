"""What the policy says about documents."""
