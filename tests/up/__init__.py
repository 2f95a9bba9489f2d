"""`cidrella up` as a process, and what a newcomer does with it."""
