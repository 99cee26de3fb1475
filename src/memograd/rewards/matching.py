"""Is the answer right, as a text or as a number; which part of a completion it is, and its words.

Both compare the `answer_part` of a completion with the row's `answer` (one, or a list of which each
is right) and give 1 or 0. Models that reason first are asked to end with `<answer>...</answer>`;
where the last such part exists, only it is compared. A completion without the tags is an answer as
a whole.

A Han character or a kana is a word of its own (they are written without blanks); every other
script gives words by its letters and digits. Full-width forms and capitals are folded (NFKC, case).
The published answer metrics (`overlap`) split on blanks instead, so a Chinese sentence would be one
token and a correct answer with one more character would score 0. Our only extension to them
(`separate_cjk`): in a text with CJK writing, every Han character and every kana is a token of its
own, full-width forms become their ASCII twins, and CJK punctuation separates. A text without CJK
writing comes back unchanged, so the official numbers on English data stay the official numbers.
Korean keeps its blanks.

The number that is compared is the last of a text, however it is written: Arabic digits of any
width, with thousands separators, decimals, a sign, an exponent, and the Chinese multipliers (3.5万,
3万5千) behind them. Chinese numerals (三百二十五, 两万, 三点五, 负七) are read only where a text
has no Arabic digit, because 一 is also a part of ordinary words (一起).

Invariants: words are a function of the text alone, and a Chinese sentence is never one word;
writing the same answer in another width, case or spacing, or the same number in Arabic, full-width
or Chinese digits, never changes the score; text outside the last answer tags never changes a
comparison; of several right answers the one that scores best counts. The Chinese writing of a whole
number is read back as that number (property test in `tests/rewards/test_numbers.py`), in its short
spoken form too: a digit right behind a unit counts tenths of that unit (一万五 is 15,000, 一万零五
is 10,005).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence

import regex

from memograd.errors import BadInput

_WORD = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}]"
    r"|[[\p{L}\p{M}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}]]+(?:['’][\p{Latin}]+)*",
    regex.VERSION1,
)
_JOINED = r"[[\p{L}\p{N}_]--[\p{Han}\p{Hiragana}\p{Katakana}]]"


def folded(text: str) -> str:
    """The text in one form: full width as half width, small letters, single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def words(text: str) -> list[str]:
    """The words of `text`, folded, in their order."""
    return [str(word) for word in _WORD.findall(folded(text))]


def has_phrase(text: str, phrase: str) -> bool:
    """Whether the folded text has the phrase, not as a piece of a longer Latin word.

    因此 is found anywhere; "so" is not found in "sofa".
    """
    wanted = regex.escape(folded(phrase), literal_spaces=True)
    pattern = rf"(?<!{_JOINED}(?={_JOINED})){wanted}(?!(?<={_JOINED}){_JOINED})"
    return bool(wanted) and bool(regex.search(pattern, folded(text), regex.VERSION1))


_CJK_CHARACTER = r"[\p{Han}\p{Hiragana}\p{Katakana}ー]"
_CJK_WRITING = regex.compile(rf"{_CJK_CHARACTER}|[\u3001-\u303f\uff01-\uffef]")
_CHARACTER = regex.compile(_CJK_CHARACTER)
_WIDE_PUNCTUATION = regex.compile(r"(?![\x00-\x7f])\p{P}")


def separate_cjk(text: str) -> str:
    """Put blanks around every CJK character; a text without CJK writing is returned as it is.

    CJK writing is a Han character, a kana, or CJK or full-width punctuation.
    `"2023年5月7日，北京。"` becomes the blank-separated tokens `2023 年 5 月 7 日 北 京`.
    """
    if not _CJK_WRITING.search(text):
        return text
    without_punctuation = _WIDE_PUNCTUATION.sub(" ", text)
    half_width = unicodedata.normalize("NFKC", without_punctuation)
    return str(_CHARACTER.sub(r" \g<0> ", half_width))


def require_texts(completions: Sequence[object]) -> None:
    """Raise `BadInput` that names the first completion which is not a string."""
    for index, value in enumerate(completions):
        if not isinstance(value, str):
            raise BadInput(
                f"`completions` must hold texts; entry {index} is {type(value).__name__} "
                f"({value!r})."
            )


def exact_match(completion: str, answer: str | float | list[str | float]) -> float:
    """1 if the completion's answer is the row's `answer`, else 0.

    Compared without case, width, extra blanks and punctuation around it; punctuation inside counts.
    """
    said = _bare(answer_part(completion))
    return float(any(said == _bare(gold) for gold in accepted_answers(answer)))


def numeric_match(
    completion: str, answer: str | float | list[str | float], *, tolerance: float = 1e-6
) -> float:
    """1 if the last number of the completion's answer is the last number of `answer`, else 0.

    `tolerance`: allowed difference, as a share of the right number (of 1 if that is smaller).
    Reads 1,234.5, １２３, 3.5万, 3万5千, 三百二十五; see `last_number`. A completion without a
    number scores 0; a gold without one is a `BadInput`.
    """
    golds = [last_number(gold) for gold in accepted_answers(answer)]
    if None in golds:
        raise BadInput(f"the column answer must have a number for numeric_match, not {answer!r}")
    said = last_number(answer_part(completion))
    if said is None:
        return 0.0
    return float(
        any(
            math.isclose(said, gold, rel_tol=tolerance, abs_tol=tolerance)
            for gold in golds
            if gold is not None
        )
    )


def _bare(text: str) -> str:
    """Without punctuation around it, unless it is nothing else."""
    plain = folded(text)
    return plain.strip(_OUTER_PUNCTUATION) or plain


_OUTER_PUNCTUATION = " .。!?,;:\"'“”‘’「」"  # folding has made full-width ones half width


_TAGGED = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.DOTALL)


def answer_part(completion: str) -> str:
    """What stands in the last `<answer>` tags, or all of the completion; without outer blanks."""
    tagged: list[str] = _TAGGED.findall(completion)
    return (tagged[-1] if tagged else completion).strip()


def accepted_answers(answer: object) -> list[str]:
    """The column `answer` as texts: one text or number, or a list of them that are all right.

    A whole number that became 42.0, as tables with gaps make them, may be written 42 too.
    """
    entries = answer if isinstance(answer, list) else [answer]
    if not entries or any(
        isinstance(entry, bool) or not isinstance(entry, str | int | float) for entry in entries
    ):
        raise BadInput(f"the column answer must be a text, a number or a list, not {answer!r}")
    return [text for entry in entries for text in _written(entry)]


def _written(entry: object) -> list[str]:
    if isinstance(entry, float) and entry.is_integer():
        return [str(int(entry)), str(entry)]
    return [str(entry)]


def best_score(score: Callable[[str], float], answer: object) -> float:
    """The greatest `score(gold)` over the answers that the row accepts: one text or several.

    Raises BadInput where one of them is no text.
    """
    given = answer if isinstance(answer, list) else [answer]
    golds = [gold for gold in given if isinstance(gold, str)]
    if not golds or len(golds) < len(given):
        raise BadInput(f"`answer` must hold texts, or lists of texts; it holds {answer!r}.")
    return max(score(gold) for gold in golds)


_ARABIC = re.compile(
    r"(?P<sign>负|(?<![0-9A-Za-z)])[-+])?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\w.])\.\d+)"
    r"(?P<exponent>[eE][-+]?\d{1,3}(?![0-9A-Za-z]))?"
    r"(?P<unit>[十百千万亿]*)",
)
# Bounded, so that the largest one is still a float.
_CHINESE = re.compile(
    r"负?[零〇一二两三四五六七八九十百千万亿]{1,30}(?:点[零〇一二三四五六七八九]{1,30})?"
)
_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")}
_DIGITS |= {"〇": 0, "两": 2}
_SMALL_UNITS = {"十": 10, "百": 100, "千": 1000}
_LARGE_UNITS = {"万": 10**4, "亿": 10**8}
_UNITS = _SMALL_UNITS | _LARGE_UNITS
_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x2212: ord("-")}


def last_number(text: str) -> float | None:
    """The number that `text` ends with, wherever that is; None if it has none."""
    plain = text.translate(_HALF_WIDTH)
    arabic = list(_ARABIC.finditer(plain))
    if arabic:
        return _joined_value(arabic)
    chinese = _CHINESE.findall(plain)
    return _chinese_value(chinese[-1]) if chinese else None


def _joined_value(matches: Sequence[re.Match[str]]) -> float:
    """The number that the last of `matches` ends: it may have begun before (3万5千)."""
    value, ended, unit = 0.0, 0, 1.0
    negative = False
    for match in matches:
        own, its_unit = _arabic_value(match), _unit_value(match["unit"])
        lower = 0 < own < unit and not match["sign"] and not match["exponent"]
        if match.start() == ended and unit > 1 and lower:
            # One digit without a unit is said for tenths of the unit before it (3万5).
            value += own * unit / 10 if re.fullmatch("[1-9]", match[0]) else own
        else:
            value, negative = own, match["sign"] in ("-", "负")
        ended, unit = match.end(), its_unit
    return -value if negative else value


def _arabic_value(match: re.Match[str]) -> float:
    """What stands there, without its sign."""
    return float(match["digits"].replace(",", "") + (match["exponent"] or "")) * _unit_value(
        match["unit"]
    )


def _unit_value(units: str) -> float:
    return math.prod(float(_UNITS[unit]) for unit in units)


def _chinese_value(text: str) -> float:
    whole, _, decimals = text.removeprefix("负").partition("点")
    value = float(_chinese_whole(whole))
    if decimals:
        value += float("0." + "".join(str(_DIGITS[digit]) for digit in decimals))
    return -value if text.startswith("负") else value


def _chinese_whole(text: str) -> int:
    """A whole number in Chinese numerals; a row of bare digits (二〇二五) is read one by one."""
    if all(character in _DIGITS for character in text):
        return int("".join(str(_DIGITS[character]) for character in text))
    if text[-1] in _DIGITS and text[-2] in _UNITS:  # 一万五 for 一万五千
        tenths = _UNITS[text[-2]] // 10
        return _chinese_whole(text[:-1]) + _DIGITS[text[-1]] * tenths
    for unit in ("亿", "万"):
        if unit in text:
            high, _, low = text.rpartition(unit)
            rest = _chinese_whole(low) if low else 0
            return (_chinese_whole(high) if high else 1) * _LARGE_UNITS[unit] + rest
    total, digit = 0, 0
    for character in text:
        if character in _SMALL_UNITS:
            total += (digit or 1) * _SMALL_UNITS[character]
            digit = 0
        else:
            digit = _DIGITS[character]
    return total + digit
