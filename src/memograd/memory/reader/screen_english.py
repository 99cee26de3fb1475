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
_EMOTION: Final = (
    r"(?:glad|happy|proud|sorry|impressed|jealous|excited|thankful|grateful|touched|stoked|thrilled"
    r"|sure|here|fine|good|great|okay|ok|well|curious|lucky|blessed|pumped|speechless|amazed|ready"
    r"|tired|busy|nervous|hopeful|honored|moved|psyched|delighted|back|afraid|in awe"
    r"|starving|hungry"
    r"|all ears|down|on it|so in|kidding|serious|joking|lost|swamped)"
)
_REACTION: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^(?:i|we) (?:really |so |totally |completely |100% |just |definitely |can "
            r"|do |couldn't |can't |could )*"
        r"(?:agree|see$|see what|see that|get it|get that|understand|guess|bet|think so"
            r"|hope so|imagine|appreciate"
        r"|feel you|hear you|believe you|know(?:$| (?:what|how|right|that|you|it))"
            r"|admire|relate|wish you"
        r"|hope (?:you|it|your|that|they|we|all)|doubt|mean it|swear|promise|thank|envy|salute)\b",
        rf"^(?:i'm|i am|we're|we are|i was|we were|i feel|i felt) (?:so |really |super "
            rf"|very |just |always |also |all "
        rf"|truly |pretty |totally |still |quite )*{_EMOTION}(?: (?:for|of|to|about"
            rf"|that|you|by|with|it|now|too)\b.*"
        r"\b(?:you|your|hear|see|meet)\b.*| (?:and|for) (?:so )?.{0,25})?$",
        r"^(?:i|we) (?:really |so |just |totally |also )*(?:love|like|adore|enjoy|loved|liked) "
        r"(?:that|this|your|how|it|these|those|them|the (?:idea|sound|way|color|colors"
            r"|look|pattern)|all|you)\b(?!.*\b(?:when|because|last|my|since)\b)",
        r"^(?:i|we) (?:can't|cannot|can not|couldn't) (?:wait|agree|believe|thank"
            r"|complain|imagine|even|argue)\b",
        r"^(?:i'll|i will|we'll|we will) (?:keep|let|talk|tell|send|do it|remember"
            r"|catch|see|be there|be here"
        r"|definitely|check it|check that|try(?: it| that)?$|give it|share|have to"
            r"|make sure|do my best|pass|think about)\b",
        r"^(?:i|we)(?:'ve| have)? ?(?:gotta|got to|have to|must|need to|better"
            r"|should) (?:run|go|get some sleep|get going|hang up|leave|head|rush|admit|say"
            r"|be going|get back)\b",
        r"^(?:i'm|i am|we're|we are) off\b",
        r"^i (?:missed|miss) you|^i (?:wish|wanted to|want to|wanna|just wanted to"
            r"|would love to|'d love to|'d like to) (?:i|you|we|hear|know|see (?:it|that"
            r"|you|them|your)|tell you|ask|thank|say|share with|show you)\b",
        r"^i'd (?:love|like) to (?:hear|know|see (?:it|that|you|them|your)|meet|join)"
            r"|^i(?:'d| would) say\b",
        r"^(?:i think|i believe|i'm sure|i am sure|i guess|i suppose|i know) (?:that "
            r"|you|it's|that's|this|they|we|it|so)\b",
        r"^(?:i|we) (?:told|asked|hear|heard) you\b|^i never had it\b|^(?:i"
            r"|we) lost track\b|^we (?:got|can|should|could|all|'ve got this|need to|must"
            r"|have to)\b",
        r"^we(?:'ve| have) (?:come|got this|got each)|^(?:i|we) (?:could|can"
            r"|would) (?:never|not) (?:do|have done)",
        r"^(?:i|we)(?:'ll| will)? (?:won't|will not|never|am not going to|'m not gonna) (?:ever )?"
            r"(?:give up|quit|stop|back down|let (?:you|anyone|anything|it|this|them)\b.*)$",
        r"^(?:i|we)(?:'ll| will)? (?:keep|kept|just keep) (?:going|pushing|trying|fighting|at it)$",
        r"^(?:my|your) turn\b|^finally,? we (?:get|got) to\b|^(?:i|we) missed (?:our|this|talking)"
            r"|^(?:i|we)(?:'d| would) never have (?:guessed|thought|known)"
            r"|^(?:i|we)(?:'d| had) better\b|^(?:now|then),? (?:tell|show)\b|^(?:oops|whoops)\b"
            r"|^life(?:'s| is) (?:tough|hard|short|good|great|full)\b|^for letting\b"
            r"|^there's something i (?:want|wanted|need)\b|^i(?:'m| am) (?:so |really )?(?:jealous"
            r"|envious)\b|^now i(?:'m| am) craving\b|^i(?:'ll| will) (?:do that|start thinking"
            r"|look into it|look for)\b|^i(?:'d| would) love to see (?:another|more|some)\b"
            r"|^(?:i|we) (?:so |totally )?needed (?:that|this|a chat)\b",
        r"^i can'?t even\b|^(?:let|lemme)\b",
        r"\b(?:means?|meant) (?:a lot|so much|the world)(?: to me| to us)?$",
        r"^(?:thanks|thank|thx|cheers|congrats|good luck|take care|bye|goodbye"
            r"|see (?:you|ya)|talk (?:to you )?(?:soon|later)|"
        r"have (?:a|fun|an)|sleep well|enjoy|keep|stay|cherish|wishing|wish|hope|hoping"
            r"|hopefully|can't wait|cannot wait|looking forward|glad|"
        r"happy|proud|excited|stoked|thrilled|so |such |what |how |sounds|looks|seems"
            r"|love|loving|nice|good|great|awesome|amazing|way to go|you go|"
        r"appreciate|appreciating|totally|absolutely|no doubt|no worries|no problem"
            r"|never mind|me too|same|likewise|long time|nothing|not much|missed|pretty"
            r"|busy|"
        r"been a |sorry|poor|lucky|too bad|oh|ha|yay|woo|bravo|well done|nicely"
            r"|fingers crossed|my pleasure|my goodness|my god|my bad|gotta (?:run|go)|"
        r"speaking of|not bad|just wow|of course|it's all|wonderful|beautiful|gorgeous"
            r"|lovely|stunning|impressive|incredible|inspiring|this is (?:so|really|great"
            r"|awesome)|off to|"
        r"that's|that is|that was|that sounds|that looks|that must|that would|that will"
            r"|that'd|that makes|that really|and you're|hang in|best of luck|cool|yum|super"
            r"|fantastic|brilliant|excellent|perfect|fun)\b",
        r"^(?:here's|here is|here are|there (?:it|you)|check (?:it|this|that|out)"
            r"|take a look|look at|look)\b",
        r"^(?:y'all|you|your|you're|you've|you'd|you'll)\b",
        r"^(?:i|we) (?:love|like|enjoy) (?:it|them|that|this)(?: too| so much| a lot)?$",
        r"^my (?:pleasure|goodness|bad|god)\b",
        r"^(?:i|it) (?:really )?(?:mattered|works?|helps?|helped|shows?|was|is|rocks)$",
        r"\btime flies\b",
        r"\blet (?:me|us) know\b|^it's got to be\b|^lots of things\b|^i(?:'m"
            r"| am) (?:good|fine|well|great|okay|ok),? thank",
        r"^(?:nah,? )?(?:i|we) (?:\w+ )?(?:have|has|do|did|can|could|would|should|will"
            r"|am|was)(?:n't| not)?$",
        r"^(?:i|we) (?:should|might|could|may) (?:definitely |really )?(?:try|do|check"
            r"|look into) (?:it|that|this|one)\b",
        r"^i did(?:n't| not) (?:know|see) that\b",
        r"^(?:a lot|lots|so much|so many things|(?:some )?big things"
            r"|much)\b.{0,12}\b(?:going on|happen|changed)",
        r"^it(?:'s| is| was) (?:so |really |always |also )*(?:awesome|great|amazing"
            r"|nice|cool|good|important|inspiring|wonderful|lovely|"
        r"incredible|special|fun) (?:to|that|how|seeing|when|having|you)\b(?!.*\b(?:I|my|me)\b)",
        r"^\w+ing\b(?!.*\b(?:i|my|me|i'm|i've)\b).*\b(?:is|are|isn't|aren't|takes|makes|brings)\b",
        r"^i(?:'m| am)? (?:doing |)(?:fine|good|well|ok|okay|alright|great)(?: thanks| too)?$",
        r"^i never thought (?:of|about) (?:it|that)|^i have no idea|^i don't know"
            r"|^i've no clue|^i know nothing",
        r"^i need (?:to meet|that|one|it)\b|^i keep meaning to\b|^(?:i|we) (?:do|did"
            r"|have|am|are|was|were|can|will|would|don't|didn't)$",
    )
)  # fmt: skip
_DEMONSTRATIVE: Final = re.compile(
    r"^(?:it|it's|it'll|this|these|those|they|they're|they've|he|she|he's|she's|there"
    r"|there's|everyone|everything|his|her|their|its|the name|no one)\b",
    re.IGNORECASE,
)
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
    r"|just (?:be|keep|do|make)|"
    r"remember|forget|share|think|consider|use|add|set|open|close|run|stop|start"
    r"|continue|hold|eat|drink|save|talk|speak|welcome|greet)\b",
    re.IGNORECASE,
)
_PROCEDURAL: Final = re.compile(
    r"^(?:please )?(?:from now on|in (?:the )?future|going forward|always|never"
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
    r"|fyi,?|just so you know,?)\s+(?=\w)",
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


def leans_on_previous(text: str) -> bool:
    """Whether its subject is a word for something said before ("It", "She", "The name")."""
    return bool(_DEMONSTRATIVE.search(text))


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
