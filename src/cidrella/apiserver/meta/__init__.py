"""The metadata of objects."""
