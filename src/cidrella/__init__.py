"""Cidrella: IP address management for Kubernetes."""

__version__ = "0.1.0"
