"""What every source of text must do, as a list of the rules that one breaks.

Use it in a test of your own source::

    def test_my_source_keeps_the_rules():
        assert broken_rules(lambda: MySource("data")) == []
"""

from collections.abc import Callable

from wholestack.data.licences import is_stated
from wholestack.data.source import WHY, Refusal, Source, SourceDocument, check_name
from wholestack.errors import InputError

Item = SourceDocument | Refusal


def broken_rules(make: Callable[[], Source]) -> list[str]:
    """The rules that a source breaks, each as one sentence; empty when it keeps them all.

    Args:
        make: Makes the source anew over the same content, of which some must be usable; called twice.
    """
    source = make()
    try:
        check_name(source.name)
    except InputError as error:
        return [str(error)]
    found = list(source.documents())
    again = list(source.documents())
    anew = list(make().documents())
    return [
        *_of_the_source(source),
        *([] if found == again else ["documents() called twice gives two answers"]),
        *([] if found == anew else ["two sources over the same content give two answers"]),
        *_of_documents([each for each in found if isinstance(each, SourceDocument)]),
        *_of_refusals([each for each in found if isinstance(each, Refusal)], source.name),
        *(f"{type(each).__name__} is neither document nor refusal" for each in found if not isinstance(each, Item)),
    ]


def _of_the_source(source: Source) -> list[str]:
    said = source.licence
    fit = bool(said.strip()) and said.isprintable()
    return [] if fit else ["licence is not one line of text"]


def _of_documents(documents: list[SourceDocument]) -> list[str]:
    broken = [] if documents else ["no document at all"]
    paths = [document.path for document in documents]
    if len(set(paths)) < len(paths):
        broken.append(f"two documents have the path {max(paths, key=paths.count)!r}")
    for document in documents:
        if not is_stated(document.licence):
            broken.append(f"{document.path!r} has no licence: {document.licence!r}")
        if not _has_utf8(document.text) or not _has_utf8(document.path):
            broken.append(f"{document.path!r} holds a lone surrogate")
    return broken


def _of_refusals(refusals: list[Refusal], name: str) -> list[str]:
    broken = [f"{each.path!r} is refused in the name of {each.source!r}" for each in refusals if each.source != name]
    broken += [f"{each.path!r} is refused for {each.reason!r}" for each in refusals if each.reason not in WHY]
    return broken + ["a refusal does not say what was refused" for each in refusals if not each.path]


def _has_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
