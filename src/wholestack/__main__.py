"""``python -m wholestack`` is the command."""

from wholestack.cli.main import main

main()
