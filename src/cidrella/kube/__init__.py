"""The transport: how to reach a Kubernetes API, follow what it holds, lead, and tell. Knows no IPAM."""
