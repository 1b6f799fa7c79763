"""The same queries asked of other systems, each in an environment and a process of its own."""
