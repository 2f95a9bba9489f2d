"""What Services are given: addresses from `serviceip`, and node ports."""
