"""What makes a price true: operations that stand outermost in a statement and read columns of its waist."""
