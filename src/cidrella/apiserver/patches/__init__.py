"""Patches: a merge, a list of steps, or a merge that knows the kind."""
