"""The webhook that the API server asks about Services, and the certificates that it shows."""
