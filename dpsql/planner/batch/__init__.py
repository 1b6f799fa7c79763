"""Many counts over one relation, measured together: what each asks (`members`), the classes of values that tell them
apart (`classes`), what each is a sum of (`workload`), how accurately which marginals are measured (`shares`), and what
the noisy marginals say of all of them (`estimate`). From public texts alone; no privacy rests on any of it.
"""
