"""What a simple sentence says (about whom, which property, which value), and how two agree.

The rule-based reader and manager share this understanding, in English and Chinese. May import the
standard library only; every form is pinned by `tests/memory/test_statements.py`.
"""

from memograd.memory.statements.language import Language, chinese_characters, language_of
from memograd.memory.statements.parse import parse_statement
from memograd.memory.statements.statement import SINGLE_VALUED, Statement
from memograd.memory.statements.wording import Wording, agreement, same_text, wording

__all__ = [
    "SINGLE_VALUED",
    "Language",
    "Statement",
    "Wording",
    "agreement",
    "chinese_characters",
    "language_of",
    "parse_statement",
    "same_text",
    "wording",
]
