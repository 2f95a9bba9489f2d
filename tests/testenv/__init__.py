"""The real thing to test on: a Kubernetes API server, its etcd and kubectl, found or built, started and stopped."""
