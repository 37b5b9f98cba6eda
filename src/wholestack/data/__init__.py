"""Text with provenance: sources, tokenizer, near-duplicates, shards, corpus and loader.

Training a tokenizer needs the package ``tokenizers``; :func:`wholestack.data.build.prepare` is therefore imported
from its module. Everything here does without.
"""

from wholestack.data.corpus import Corpus
from wholestack.data.folder import FolderSource, JsonLinesSource, MemorySource
from wholestack.data.loader import Loader, Stretch
from wholestack.data.python_library import python_sources
from wholestack.data.source import Document, Refusal, Source, SourceDocument
from wholestack.data.tokenizer import Tokenizer
from wholestack.data.unigram import unigram_bits_per_byte

__all__ = [
    "Corpus",
    "Document",
    "FolderSource",
    "JsonLinesSource",
    "Loader",
    "MemorySource",
    "Refusal",
    "Source",
    "SourceDocument",
    "Stretch",
    "Tokenizer",
    "python_sources",
    "unigram_bits_per_byte",
]
