"""Reads a page as a browser's parser would: structure, text, attributes."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "wbr"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str]
    children: list["Node"] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str) -> list["Node"]:
        found = [self] if self.tag == tag else []
        return found + [node for child in self.children for node in child.all(tag)]

    def every(self) -> list["Node"]:
        return [self, *(node for child in self.children for node in child.every())]

    def words(self) -> str:
        """All text inside, in order, with single spaces."""
        own = self.text if self.tag == "#text" else " ".join(child.words() for child in self.children)
        return " ".join(own.split())


class Reader(HTMLParser):
    """Builds the tree and refuses a tag that closes nothing or stays open."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("root", {})
        self._open = [self.root]

    def handle_starttag(self, tag, attrs):
        node = Node(tag, {name: value or "" for name, value in attrs})
        assert len(node.attributes) == len(attrs), f"<{tag}> has an attribute twice"
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag, attrs):
        self._open[-1].children.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data):
        self._open[-1].children.append(Node("#text", {}, text=data))

    def close(self):
        super().close()
        assert self._open == [self.root], f"left open: {[node.tag for node in self._open]}"


def read(html: str) -> Node:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader.root
