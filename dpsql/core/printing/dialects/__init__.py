"""The dialects that plans can be printed in: one file each, and one for how it spells the functions."""
