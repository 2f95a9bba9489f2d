"""`python -m cidrella` is `cidrella`."""

from cidrella.cli.main import main

main()
