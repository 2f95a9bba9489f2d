"""Custom resources and their definitions."""
