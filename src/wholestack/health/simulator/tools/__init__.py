"""What each tool prints on a simulated host, written from the tool's documentation and recorded forms of its output."""
