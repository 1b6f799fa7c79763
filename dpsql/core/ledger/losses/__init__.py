"""Losses by period, added up, and the budgets that limit them."""
