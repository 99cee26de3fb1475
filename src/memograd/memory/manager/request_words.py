"""How a request to forget is worded: whether it asks in words, only points, or says what it means.

    Forget that, please.                   it only points
    Leave my religion out of it.           it says what, though no item may have the word
    It must not sit in your drawers.       no word asks

Invariant: pure functions of the message; none knows what is remembered.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import is_chinese
from memograd.memory.manager.cues import BARE_REQUEST
from memograd.memory.manager.past import stems
from memograd.memory.reader.asked import FORGETS, requests
from memograd.memory.reader.fact import Heard
from memograd.memory.reader.forget import MAY_ASK

_THAT: Final = re.compile(r"\bthat (?=(?:I|my|we|our|he|she|they|there)\b)", re.IGNORECASE)
TELLS: Final = re.compile(
    r"\b(?:said|say|saying|told|tell|mention\w*|heard|spoke\w*|talk\w*|known?)\b|[说說讲講提聊]"
    r"|告[诉訴]",
    re.IGNORECASE,
)
_SPOKEN_OF: Final = re.compile("[那这][句段条件个些]|的事|关于")
_SENTENCE: Final = re.compile(r"[^.!?。！？]+[.!?。！？]*")
OF_ASKING: Final = stems(
    "please pls plz thanks ta sorry actually just can could would you want back out second thoughts"
    " changed mind again now wait never here there say said tell told get got rid bit thing part"
    " shouldn typed wrote what which who whom where when how why about used have with from this"
    " notes memory records your mind head books"
    " 请麻烦吧把不对刚才算了谢掉除清空下帮您着给替"
)
"""What requests are worded with, which names nothing."""


def asks_in_words(text: str) -> bool:
    """Whether a message has a word that requests to forget have."""
    return bool(MAY_ASK.search(text) or FORGETS.search(text)) or requests(text)


def only_points(heard: Heard) -> bool:
    """Whether what asks says nothing of what it means: "Forget that, please."

    "Leave my religion out of it" says what, though no item may have the word.
    """
    own = asking_of(heard)
    bare_ask = points_back(own)
    if is_chinese(own):  # says first what it speaks of: 这句收回,传出去要出大事
        own, *rest = re.split("[，,；;]", own)
        bare_ask = points_back(own) or MAY_ASK.search(own) is not None
        if any(_SPOKEN_OF.search(clause) for clause in rest):
            return False
    if not bare_ask:
        return False
    return not says_of(own)


def says_of(own: str) -> frozenset[str]:
    """The words of a request for what it means."""
    return stems(MAY_ASK.sub(" ", BARE_REQUEST.sub(" ", own))) - OF_ASKING


def points_back(own: str) -> bool:
    """Whether it points: "delete that" does, "delete that I was married" does not."""
    return BARE_REQUEST.search(_THAT.sub(" ", own)) is not None


def asking_of(heard: Heard) -> str:
    """The sentences that ask, of "I shouldn't have told you. Please forget it. Tea or coffee?"."""
    asking = [one for one in _SENTENCE.findall(heard.own) if MAY_ASK.search(one)]
    return " ".join(asking) or heard.own
