"""Summaries: all marginals of at most k columns of a list, measured once. What is measured (`design`), and which sum of
the measured numbers a later query asks for (`fit`). From public texts alone; no privacy rests on any of it.
"""
