"""Code questions that are always fresh: made from a seed, answered by running them, with a dial for difficulty."""
