"""Which English sentences are worth remembering, told by their form.

Kept are statements about people and things; dropped are greetings, thanks, questions, requests,
reactions and compliments, which are most of what people say. Invariant: the table of kept and
dropped sentences in `tests/memory/test_reader.py`. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.reader.person_english import FIRST_PERSON
from memograd.memory.statements import parse_statement

_OPENER: Final = (
    r"hey(?: there)?|hi(?: there)?|hello|wow|woah|whoa|yeah|yep|yup|yes|no|nope"
    r"|oh(?: no| yes| wow)?|ah"
    r"|aww+|aw|haha|ha|hmm|well|cool|awesome|great|sure|thanks(?: so much| a lot| again)?|thank you"
    r"(?: so much)?|so|totally|absolutely|actually|by the way|btw|also|plus|anyways?|okay|ok|sorry"
    r"|definitely|exactly|right|nice|sweet|totally agree|good (?:morning|evening|afternoon|night)"
    r"|welcome back|of course|no worries|no problem|oh my|congrats|congratulations|amazing|lol|man"
    r"|honestly|to be honest|you know|i mean|i know|i agree|agreed|that's (?:great"
    r"|awesome|cool)|true"
    r"|indeed|forget what i said(?: before| earlier)?|big news"
    r"|good news|really"
    r"|for sure|busy as ever|same here|me too|fyi|guess what|well said|gosh|omg|fun"
)
_QUESTION: Final = re.compile(r"[?？]\W*$")
_REACTION: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^(?:i|we) (?:really |so |totally |just |100% )*(?:agree|get (?:it|that)|understand"
        r"|guess|bet|hope so|appreciate|know(?:$| (?:how|it|what))|hope (?:you|it)|swear|thank)\b",
        r"^(?:i'm|i am|i was|we're) (?:so |really |super |always )*(?:glad|happy|proud|sorry"
        r"|impressed|excited|thankful|grateful|here|lucky|pumped|tired|in awe|kidding)"
        r"(?: (?:for|of|to|you|by)\b.*\b(?:you|your|hear|see|meet)\b.*"
        r"| (?:and|for) (?:so )?.{0,25})?$",
        r"^(?:i|we) (?:really |so |also )*(?:love|like|loved) (?:that|this|your|how|it|these|those"
        r"|all)\b(?!.*\b(?:when|because|last|my|since)\b)",
        r"^(?:i'll|i will|we'll) (?:keep|let|send|do my best)\b",
        r"^(?:i'm|we're) off\b",
        r"^(?:i|we) (?:can't|cannot|couldn't) (?:wait|agree|believe|thank|imagine)\b",
        r"^(?:i|we)(?:'ll| will)? (?:won't|never) (?:ever )?(?:give up|stop|let (?:you|this)\b.*)$",
        r"^(?:i|we)(?:'ve| have|'d)? ?(?:gotta|got to|have to|better) (?:run|go|get|leave|say)\b",
        r"^(?:i|we) (?:told|hear) you\b|^we (?:got|can|should|could|all)\b",
        r"^(?:oops|whoops|i(?:'ll| will) do that|i(?:'d| would) love to see (?:another|some))\b",
        r"^i can'?t even\b|^(?:let|lemme)\b",
        r"^(?:that'?s|thats) (?:all|it|everything)(?: (?:for|from) (?:now|me|today))?(?: x+)?$",
        r"^(?:thanks|thank|thx|ta|cheers|congrats|take care|bye|goodbye|see (?:you|ya)|"
        r"talk (?:to you )?(?:soon|later)|have (?:a|fun)|enjoy|keep|stay|cherish|wishing|"
        r"wish|hope|hopefully|can't wait|looking forward|glad|happy|proud|excited|so |such |"
        r"what |how |sounds|looks|seems|love|loving|nice|good|great|awesome|way to go|"
        r"appreciate|appreciating|totally|absolutely|no doubt|no worries|never mind|same|"
        r"long time|nothing|missed|pretty|busy|been a |sorry|lucky|oh|ha|yay|well done|"
        r"fingers crossed|gotta (?:run|go)|of course|it's all|wonderful|beautiful|lovely|"
        r"inspiring|that's|that is|that was|that sounds|that looks|that must|that makes|"
        r"and you're|hang in|best of luck|cool|yum|super|perfect)\b",
        r"^(?:here's|here is|here are|check (?:it|this|out)|take a look|look)\b",
        r"^(?:y'all|you|your)\b",
        r"^(?:ah+|aha|argh+|hang on|hold on|(?:good |oh )*lord|hm+|huh|phew|whoa|blimey|crikey|gosh"
        r"|jeez|right|well|confession(?: time)?|correction|update|long story)$",
        r"^it(?:'s| was) (?:so |also )*(?:awesome|great|amazing|nice|cool|good|important|"
        r"inspiring|special) (?:to|that|how|seeing|having|you)\b(?!.*\b(?:I|my|me)\b)",
        r"^\w+ing\b(?!.*\b(?:i|my|me)\b).*\b(?:is|are|isn't|takes|makes)\b",
    )
)  # fmt: skip
_PRAISE: Final = (
    r"(?:amazing|awesome|great|cool|beautiful|gorgeous|stunning|lovely|fun|nice"
    r"|inspiring|incredible|wonderful|special|important|good|cute|adorable|"
    r"rewarding|powerful|tough|hard|true|perfect|fantastic|the best|a blast|so|really"
    r"|super|very|such|awesome|neat|sweet|crazy|interesting|exciting|key|vital|"
    r"delicious|brilliant|enough|worth|everything|loud|a good|a great|a nice|such"
    r"|always|a big|a huge|my pleasure|like)"
)
_IMPERATIVE: Final = re.compile(
    r"^(?:please\b|can you|could you|would you|will you|tell|show|give|send|help|let"
    r"|let's|lets|recommend|suggest|explain|write|make (?:me|a|sure)|find|"
    r"look|check|try|go|come|take|play|call (?!me)|wait|imagine|remind|translate"
    r"|summari[sz]e|list|describe|compare|create|generate|draft|book|order|search|"
    r"spill|guess|believe|trust|be |don't|do not|never give|say|ask|feel free|get some"
    r"|watch|read|listen|bring|join|visit|text|pick|promise|hurry|count|dream|follow"
    r"|just (?:be|keep|do|make)|do (?:your|some)|"
    r"remember|forget|share|think|consider|use|add|set|open|close|run|stop|start"
    r"|continue|hold|eat|drink|save|talk|speak|welcome|greet)\b",
    re.IGNORECASE,
)
_PROCEDURAL: Final = re.compile(
    r"^(?:please )?(?:from (?:now|here) on|in (?:the )?future|going forward|always|never"
    r"|don't ever|do not ever|whenever (?:i|you)|when(?:ever)? (?:you|i) (?:answer"
    r"|reply|respond|write|ask)|"
    r"every time|(?:only |please )?(?:answer|reply|respond|speak|talk|write|address"
    r"|call) (?:to )?(?:me|my|in|with|using|only|briefly|concisely|always)|"
    r"(?:use|avoid|keep) (?:\w+ ){0,4}(?:from now on|in (?:your|all)|when (?:answering"
    r"|replying|talking)|answers?|replies|responses)|"
    r"(?:don't|do not|stop) (?:use|using|call|calling|answer|reply|send|sending|ask"
    r"|mention|mentioning|include|add) )",
    re.IGNORECASE,
)
_AGENT_WISH: Final = re.compile(
    r"^i(?:'d| would)? (?:like|want|prefer|need|expect) (?:for )?(?:you|your (?:answers"
    r"|replies|responses))\b|^i prefer (?:short|brief|concise|long|detailed|formal"
    r"|informal|bullet)\b|"
    r"^when (?:answering|replying|writing|talking) (?:to )?me\b",
    re.IGNORECASE,
)
_NOTE: Final = re.compile(
    r"^(?:please |and |also )?(?:(?:remember|note|keep in mind|don't forget"
    r"|do not forget|be aware|know|bear in mind)(?: that| this)?[:,]?|for the record,?"
    r"|fyi,?|just so you know,?)\s+(?!to [a-z])(?=\w)"
    # "Put in I got 22 kids", "write down what I want": what is told, without the order.
    r"|^(?:please |and |also )*(?:put|add|write|jot|note)(?: (?:in|down|that|also))*"
    r" (?=(?:i|i['’]m|i['’]ve|we|we['’]re|what (?:i|we))\b)",
    re.IGNORECASE,
)
_ASKS_YOU: Final = re.compile(r"^(?:can|could|would|will) (?:you|u)\b", re.IGNORECASE)
_UNMARKED: Final = re.compile(
    r"^\W*(?:(?:and|but|so|ok|also),? )*(?:how (?:do|can|to|much|many|long|far)"
    r"|wh(?:at|ere|en|o|y)(?:['’]?s| is| are| do| does| should| can)|which (?:one|of|is)"
    r"|(?:can|could|would|will|have|had|were) (?:you|u)"
    r"|(?:do|does|did|should|is|are|can) (?:i|we|it|the|you|there)(?![^.]*\.$)) ",
    re.IGNORECASE,
)
_HOW_TO: Final = re.compile(
    r"^(?:to|in order to) \w+ .+?, (?:you |we |i )?(?:first |then |just |always |need"
        r"|have to|must|should|press|hold|click|run|use|open|add|turn|set|go|type|put)"
        r"|^(?:first|step \d+)[,:] .+",
    re.IGNORECASE,
)  # fmt: skip


def strip_openers(text: str, names: tuple[str, ...]) -> str:
    """The sentence without "Wow, Caroline!" before it and ", Mel" behind it."""
    called = "|".join(
        sorted(
            {re.escape(n[:k]) + r"l?" for n in names for k in range(3, len(n) + 1)}
            | {re.escape(n) for n in names},
            key=len,
            reverse=True,
        )
    )
    vocative = rf"(?:(?:{called})\b)" if called else r"(?!)"
    opener = re.compile(
        rf"^(?:(?:{_OPENER})(?:[ ,]+{vocative})?|{vocative})\s*(?:[,!.:;—–]+|\s[-–—]\s|-\s)\s*",
        re.IGNORECASE,
    )
    bare_opener = re.compile(
        rf"^(?:you (?:won't|wouldn't|will not) believe (?:it|this)[, ]+but"
        rf"|wow|yeah|yep|yes|oh|ah|haha|hey|hi|thanks|well|and|but"
        rf"|so)(?: {vocative})?[ ,]+(?=(?:i|i'm|i've|my|we|we're|we've|our)\b)",
        re.IGNORECASE,
    )
    while (shorter := bare_opener.sub("", opener.sub("", text, count=1), count=1)) != text:
        text = shorter
    return re.sub(rf"\s*,\s*{vocative}(?=[\s.!]*$)", "", text, flags=re.IGNORECASE).strip(" ,-–—")


def is_question(text: str) -> bool:
    """Whether the sentence asks."""
    return bool(_QUESTION.search(text))


def is_request(text: str) -> bool:
    """Whether the sentence asks somebody to do something now."""
    return bool(_IMPERATIVE.search(text))


def asks_you(text: str) -> bool:
    """Whether it asks the other to do something: "can you write me a text"."""
    return bool(_ASKS_YOU.search(text))


def asks_unmarked(text: str) -> bool:
    """Whether it is a question by its first words, though nothing marks it: "how do i fix it"."""
    return bool(_UNMARKED.match(text))


def is_procedural(text: str) -> bool:
    """Whether the sentence says how the agent is to act from now on, or how something is done."""
    return bool(_PROCEDURAL.search(text) or _AGENT_WISH.search(text) or _HOW_TO.search(text))


def strip_note(text: str) -> str:
    """The statement in "Please remember that my wife is called Ann"."""
    return _NOTE.sub("", text)


def is_reaction(text: str) -> bool:
    """Whether the sentence only reacts, greets, thanks or praises."""
    bare = text.strip(" .!…").replace("’", "'")
    bare = re.sub(r"[^\w\s'\"%&$€#+@.,;:()/-]+", "", bare).strip()
    return not bare or any(pattern.search(bare) for pattern in _REACTION)


def is_statement(text: str, names: tuple[str, ...]) -> bool:
    """Whether the sentence says something about somebody or something in particular.

    names: the speakers; naming the one who is addressed is no content.
    """
    if FIRST_PERSON.search(text):
        return True
    if re.search(r"\d", text):
        return re.search(r"[A-Za-z]{2}", text) is not None
    rest = text
    for name in names:
        rest = re.sub(rf"\b{re.escape(name)}\b", "", rest)
    if parse_statement(text) is not None and re.match(r"[A-Z]", text) and not praises(text):
        return True
    if re.search(r"(?<=[\w,;'’] )[A-Z][a-z]{2,}|\"[^\"]{3,}\"", rest):
        return not praises(text)
    return (
        bool(re.match(r"(?:the|an?|his|her|their)\s", text, re.I))
        and not praises(text)
        and len(text.split()) > 4
    )


def praises(text: str) -> bool:
    """Whether the sentence calls something good, bad, hard or fun, and no more."""
    return bool(
        re.search(
            rf"\b(?:is|are|was|were|'s|sounds?|looks?|be|been|brings?|feels?"
            rf"|can) (?:\w+ly )?{_PRAISE}\b",
            text,
            re.I,
        )
    )
