"""Texts as a user types them on a command line."""


def typed(text: str) -> str:
    """A shell hands a backslash and an n over as they are; nobody who types them means them."""
    return text.replace("\\n", "\n").replace("\\t", "\t")
