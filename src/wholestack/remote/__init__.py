"""One round trip to many hosts: a batch of commands each, every command under its own limits, all outputs untrusted."""
