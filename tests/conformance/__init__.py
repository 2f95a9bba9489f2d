"""One suite for two servers: the embedded API and the real kube-apiserver, with the same expectations of both."""
