"""What is typed: lines, words, completion, history."""
