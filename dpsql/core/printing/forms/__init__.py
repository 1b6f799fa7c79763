"""What makes a price true: operations that stand outermost in what a statement adds up."""
