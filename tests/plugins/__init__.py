"""Plugins for pytest that the Makefile loads."""
