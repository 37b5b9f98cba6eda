"""A cluster in memory, for tests and for trying rules out."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from wholestack.errors import EngineError
from wholestack.health.operations.cluster import Node


class MemoryCluster:
    """Nodes that exist nowhere else.

    Args:
        names: Of usable nodes.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.by_name = {name: Node(name=name, is_usable=True, is_drained=False) for name in names}
        """Change it to play a person, or a job."""

    def nodes(self) -> Mapping[str, Node]:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""
        return dict(self.by_name)

    def drain(self, name: str, reason: str) -> None:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""
        node = self._node(name)
        if node.is_drained and node.reason != reason:
            raise EngineError(f"{name}: was drained by somebody meanwhile: {node.reason}")
        self.by_name[name] = replace(node, is_usable=False, is_drained=True, reason=reason)

    def undrain(self, name: str, reason: str) -> None:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""
        node = self._node(name)
        if node.reason != reason:
            raise EngineError(f"{name}: its reason is another by now: {node.reason or 'none'}")
        self.by_name[name] = replace(node, is_usable=True, is_drained=False, reason="")

    def shown(self, action: Literal["drain", "undrain"], name: str, reason: str) -> str:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""
        return f"{action} {name}: {reason}"

    def _node(self, name: str) -> Node:
        if name not in self.by_name:
            raise EngineError(f"{name}: there is no such node")
        return self.by_name[name]
