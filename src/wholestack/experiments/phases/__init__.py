"""The phases of a rehearsal, in order; each is a function over a Stage that reads and writes its run directory."""
