"""Benchmarks: how fast, on what, and beside what."""
