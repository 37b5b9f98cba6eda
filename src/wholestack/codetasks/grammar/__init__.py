"""The grammar: blocks of code by construct, and the chain that joins them to a program."""
