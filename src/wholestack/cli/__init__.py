"""The command: one thin module per noun."""
