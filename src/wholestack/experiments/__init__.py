"""Experiments join the other packages: ask, launch, observe, tell. The main job is the rehearsal."""
