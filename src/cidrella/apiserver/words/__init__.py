"""Faults, names, times and values, in the words of Kubernetes."""
