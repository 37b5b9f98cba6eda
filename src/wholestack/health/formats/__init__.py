"""Pure readers of what tools print: text in, facts out."""
