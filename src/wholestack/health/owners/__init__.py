"""Owners: what each needs to be told so that it acts; one file each. See ``docs/adding/owner.md``."""
