"""What must not leave the house is masked in every text of a ticket: it goes to other companies.

Known by form: private keys, bearer tokens, tokens of known makers, passwords in URLs. Known by what stands before it:
``password=``, ``"token":``, ``--api-key``. Values of environment variables (``NAME=value`` in capital letters) are
masked whatever they are called, but for registers (``CSTS=0xffffffff``). What is none of these is not found.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from wholestack.health.cleaning import printable

MASK = "[masked]"
LONGEST = 500
"""Characters of a text that are kept."""
_READ = 4_000
"""Characters of a text that are looked at; what follows is cut."""
_NAMES = (
    r"[\w.-]*(?:passw(?:or)?d|passwd|passphrase|pass_?code|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|"
    r"credential|community|authorization|cookie|session[_-]?id)[\w.-]*|pwd|psk|pin"
)
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[^\s,;&"'}\])]+)"""
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----")
_LONGEST_KEY = 200
"""Lines; a key that does not end is masked so far."""
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?i)\b(bearer|basic|digest|negotiate)(\s+)[A-Za-z0-9._~+/=-]{8,}"), rf"\1\2{MASK}"),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,20}://)[^\s/@]{1,200}@"), rf"\1{MASK}@"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?"), MASK),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bgh[a-z]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{12,}"
                r"|\bhf_[A-Za-z0-9]{16,}|\bxox[a-z]-[\w-]{10,}|\bsk-[\w-]{16,}|\bnvapi-[\w-]{16,}|\bAIza[\w-]{20,}"
                r"|\bnpm_[A-Za-z0-9]{16,}|\bpypi-[\w-]{16,}|\bdckr_pat_[\w-]{16,}"), MASK),
    (re.compile(rf"(?i)(?<![\w.-])(['\"]?(?:{_NAMES})['\"]?\s*(?:[:=]|=>|:=)\s*)(?!\[masked\]){_VALUE}"), rf"\1{MASK}"),
    (re.compile(rf"(?i)(?<![\w-])(--?(?:{_NAMES})\s+)(?!\[masked\])(?!-){_VALUE}"), rf"\1{MASK}"),
    (re.compile(r"(?i)\b(sshpass\s+-p\s*|curl\s[^|]*?-u\s*|(?:mysql|mariadb)\s[^|]*?-p)(\S+)"), rf"\1{MASK}"),
    (re.compile(rf"(?<![\w.-])([A-Z][A-Z0-9_]*=)(?!\[masked\]|=|0x[0-9a-f]{{1,16}}\b){_VALUE}"), rf"\1{MASK}"),
    # Neither a path nor a UUID, by which NVIDIA's tools name a GPU.
    (re.compile(r"(?<![\w/+-])(?!\w*-?[0-9a-f]{8}-[0-9a-f]{4}-)(?=[\w/+-]*[a-z])(?=[\w/+-]*[A-Z])(?=[\w/+-]*[0-9])"
                r"[\w+-][\w/+-]{39,}={0,2}"), MASK),
    (re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{40,}(?![0-9A-Za-z])"), MASK),
)  # fmt: skip


class Masking:
    """Masks texts one after the other, for a private key has many lines."""

    def __init__(self) -> None:
        self.count = 0
        """Texts in which something was masked."""
        self._left = 0
        """Lines of a private key that may still follow."""

    def is_key(self, line: str) -> bool:
        """Whether a line belongs to a private key; lines are to be asked for in their order."""
        begins = "-----BEGIN" in line and _KEY_BEGINS.search(line) is not None
        if not begins and not self._left:
            return False
        self._left = 0 if _KEY_ENDS.search(line) else _LONGEST_KEY if begins else self._left - 1
        return True

    def text(self, text: str) -> str:
        """Printable, without secrets, of bounded length."""
        plain = "".join(each if each.isprintable() else "\ufffd" for each in printable(text[:_READ]))
        masked = MASK if self.is_key(plain) else plain
        for pattern, instead in _RULES:
            masked = pattern.sub(instead, masked)
        self.count += masked != plain
        cut = len(text) > _READ or len(masked) > LONGEST
        return f"{masked[:LONGEST]} ... (cut)" if cut else masked

    def everything(self, plain: Any) -> Any:
        """Every text in plain dicts, lists and scalars; keys of dicts as well."""
        if isinstance(plain, str):
            return self.text(plain)
        if isinstance(plain, dict):
            return {self.text(key): self.everything(value) for key, value in plain.items()}
        if not isinstance(plain, list | tuple):
            return plain
        found = [self.everything(each) for each in plain]
        self._left = 0  # a key that does not end may not take the rest of the ticket with it
        return found

    def without_keys(self, lines: Iterable[str]) -> Iterator[str]:
        """Lines, of which those of a private key are left out."""
        return (line for line in lines if not self.is_key(line))
