"""How far answers may be from the truth: planned before noise is drawn, said beside answers. No price rests on it."""
