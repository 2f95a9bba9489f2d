"""Structural schemas and the rules in them: what a kind's objects have to be."""
