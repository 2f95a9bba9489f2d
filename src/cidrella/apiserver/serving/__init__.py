"""Requests, answered: reading, writing, deleting, watching, and what goes on behind them."""
