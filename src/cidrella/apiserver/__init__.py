"""The embedded API: a Kubernetes API for the kinds that Cidrella uses, for trying, developing and testing."""
