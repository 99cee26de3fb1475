"""What a simple sentence says (about whom, which property, which value), and how two agree.

The rule-based reader and manager share this understanding, in English and Chinese.
"""

from memograd.memory.statements.parse import parse_statement
from memograd.memory.statements.property_words import property_words
from memograd.memory.statements.statement import SINGLE_VALUED, Statement
from memograd.memory.statements.wording import Wording, agreement, same_text, wording

__all__ = [
    "SINGLE_VALUED",
    "Statement",
    "Wording",
    "agreement",
    "parse_statement",
    "property_words",
    "same_text",
    "wording",
]
