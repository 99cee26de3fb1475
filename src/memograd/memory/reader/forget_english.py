"""English requests to forget: what is to be forgotten, told by the form of the sentence.

    Could you delete what I told you about my salary?     my salary
    About my blood type: please forget it.                my blood type
    Let's pretend I never mentioned my tattoo.            my tattoo
    Don't save this: my PIN is 1234.                      my PIN is 1234

"I forgot my keys", "Don't forget to call" and "Delete the last row" ask for nothing of the kind.
A word such as "delete" counts only with something personal, something said or something noted
behind it. Invariant: the tables of requests and of ordinary talk in
`tests/memory/test_reader_forgetting.py`. Pure functions.

Requests to forget told of somebody: `Ann asked to delete her address` is about Ann's address.

A chat model, or a life log, writes such a request down as what happened; what is to be forgotten is
in it. Invariant: the result is what `RuleReader` makes of the same request in the person's own
words. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

from memograd.memory.language import language_of
from memograd.memory.reader import chinese as person_chinese
from memograd.memory.reader import forget_chinese

_ENGLISH: Final = re.compile(
    r"^(?P<who>[\w'’. -]{1,40}?) (?:(?:has |had )?(?:asked|asks|requested|requests|begged|wants"
    r"|wanted|told|instructed)|would like|made a request)(?: (?:me|us|you|them|everybody|everyone"
    r"|the assistant|[A-Z]\w+))?(?: (?:for it |please )?(?P<not>not )?to|,) (?P<act>.+)$"
)
_CHINESE: Final = re.compile(
    r"^(?P<who>[^，。要请希想让]{1,10}?)(?:曾|已经?)?(?:要求|请求|希望|请|想让|想要|要|让|拜托)"
    r"(?:别人|对方|大家|助手|我们|[你您])?(?P<act>.+)$"
)


def reported_topic(text: str) -> str | None:
    """What somebody asked to forget, with their name in it; None where the text is no such report.

    `Ann asked to erase what was said about which gym she goes to.` gives `Which gym Ann goes to`.
    """
    bare = text.strip().rstrip(" .。!！")
    if language_of(bare) == "zh":
        said = _CHINESE.match(bare)
        asked = said and forget_chinese.request_to_forget(
            "请" + re.sub(r"[他她](?!们)自?己?", "我", said["act"])
        )
        if said and asked:
            return person_chinese.resolve_person(asked[0], said["who"], None)
        return None
    said = _ENGLISH.match(bare)
    if said is None:
        return None
    act = f"don't {said['act']}" if said["not"] else said["act"]
    own, comma, more = act.partition(",")
    own = re.sub(r"\b(?:his|her|their)\b", f"{said['who']}'s", own)
    own = re.sub(r"\b(?:he|she|they|him|them)\b", said["who"], own)
    asked = request_to_forget(own + comma + more)
    return asked[0] if asked else None


_POLITE: Final = (
    r"(?:(?:please|kindly|just|oh|and|also|so|then|now|actually|hey|well|look|listen|okay|ok|sorry"
    r"|by the way|thanks|for now|on second thou?ght|if (?:possible|you can|you don't mind))[, ]+)*"
)
_ASK: Final = (
    rf"{_POLITE}(?:(?:(?:can|could|would|will) (?:you|we) (?:please |just |kindly |maybe )*)"
    r"|(?:would|do) you mind |may I ask you to |can I ask you to |I(?:'m| am) asking you to "
    r"|I(?:'d| would)? (?:really |also |just )*(?:like|want|prefer|need|love|wish|ask|beg)"
    r" (?:for )?you (?:all )?to |I wish you(?: would|'d) "
    r"|I(?:'d| would) (?:be (?:very |so |really )?(?:glad|happy|grateful)|appreciate it|prefer it"
    r"|rather) (?:if )?you(?:'d| could| would)? (?:please |just )?"
    r"|it(?:'d| would)(?: really)? be (?:great|nice|better|good|best|lovely|kind) "
    r"(?:if you(?: could| would|'d)?|to|for you to) (?:please |just )?"
    r"|you (?:can|may|should|could|must|have to|need to|might as well|might want to|are free to)"
    r" (?:now |just |please |safely |also )*"
    r"|you(?:'d| had) better |go ahead and |let's (?:just |please )?|feel free to |make sure to "
    r"|be so kind (?:as to|and) |do me a favou?r and |it's time to |time to )?"
    r"(?:please |kindly |just |completely |simply |also |now )*"
)
_FORGET: Final = r"(?:forget(?:ting)?|unlearn(?:ing)?)(?: all)?(?: about)?"
_DELETE: Final = r"(?:delet|eras|remov)(?:e|ing)|tak(?:e|ing) out"
_WIPE: Final = (
    r"(?:wip(?:e|ing)|scrub(?:bing)?|purg(?:e|ing)|clear(?:ing)?|drop(?:ping)?|strik(?:e|ing)"
    r"|scratch(?:ing)?|discard(?:ing)?|get(?:ting)? rid of|throw(?:ing)? (?:out|away)"
    r"|cross(?:ing)? out|undo(?:ing)?|let(?:ting)? go of)(?: out| away)?"
)
_IGNORE: Final = r"(?:ignor(?:e|ing)|disregard(?:ing)?|never ?mind|tak(?:e|ing) back)"
_DOUBT: Final = r"(?:don't|do not) (?:mind|believe|count|use|rely on|trust|go by)"
_NOT: Final = (
    rf"(?:{_POLITE}(?:don't|do not|stop|never(?: ever)?|no need to"
    r"|there(?:'s| is) no need (?:for you )?to|you (?:don't|do not|no longer) (?:need|have) to"
    r"|you needn't|you should not|you shouldn't"
    r"|I (?:don't|do not|no longer|never) want you to|I don't need you to"
    r"|I(?:'d| would) (?:prefer|like|want)(?: it if)? you (?:not to|to not|didn't|did not|to stop)"
    r"|I(?:'d| would) rather (?:you )?(?:didn't|did not|not have you)|(?:can|could|would) you"
    r"(?: please)? (?:not|stop)|try not to)(?: please| ever| even| keep| have to)* )"
)
_KEEP: Final = (
    r"(?:remember(?:ing)?|memori[sz](?:e|ing)|stor(?:e|ing)|sav(?:e|ing)|retain(?:ing)?"
    r"|record(?:ing)?|hold(?:ing)? on to|mak(?:e|ing) a note of|not(?:e|ing)(?: down)?"
    r"|keep(?:ing)? (?:an? |any )?(?:records?|notes?|track|memory) of|writ(?:e|ing) down"
    r"|hang(?:ing)? on to|keep(?:ing)?(?= .+ (?:on file|in (?:your )?(?:memory|mind|notes)))"
    r"|bring(?:ing)? up)"
)
_WHEN: Final = (
    r"(?: (?:earlier|before|yesterday|today|just now|previously|recently|the other day|back then"
    r"|(?:last|this) \w+|on \w+day|(?:a (?:while|moment)|\w+ (?:days|weeks|minutes|hours)) ago))?"
)
_SAYING: Final = (
    r"(?:said|say|told you|tell you|mentioned|mention|shared|share|wrote|written|talked|talk"
    r"|confided|let slip|brought up|revealed|spoke|claimed|told)(?: anything)?(?: (?:to|with) you)?"
)
_ABOUT: Final = r"(?: (?:about|of|on|regarding|concerning|that|is that|was that|where|:))?:?"
# What was said, what is known of it, and the note that was taken: what behind it is the topic.
_SAID: Final = (
    r"(?:(?:all |any )?(?:of )?(?:what(?:ever)?|everything|anything|all(?: that)?|that|the|those"
    r"|any)(?: (?:things?|stuff|parts?|bits?|story|details?|information|info|words?|one))?"
    r"(?: that| which)? (?:I|I've|I have|I had|we)(?: just| ever| once| earlier| already| have)? "
    rf"{_SAYING}{_WHEN}{_ABOUT}"
    r"|(?:all|everything|anything|whatever|what)(?: that)? you(?:'ve|(?: may| might)? have)?"
    r" (?:know|have|remember(?:ed)?|saved?|stored?|noted|learn(?:ed|t)|wr(?:o|i)t(?:e|ten)|kept"
    rf"|heard|recorded|got)(?: down)?(?: saved| stored| noted| on file)?{_ABOUT}"
    rf"|(?:what(?:ever)?|everything|anything|all(?: that)?) (?:was|has been|is|had been) (?:ever )?"
    rf"(?:said|told|mentioned|written|known|noted|stored|remembered|saved){_WHEN}{_ABOUT}"
    r"|(?:everything|anything|all(?: the)? (?:details|information|info|memor(?:y|ies)))"
    r"(?: (?:there is|to do|to know))?"
    r"(?: about| of| on| regarding| concerning| with)"
    r"|(?:the|your|any|all|that|every|this|all your|all the|my) (?:\w+ )?(?:notes?|memor(?:y|ies)"
    r"|records?|entr(?:y|ies)|facts?|info(?:rmation)?|statements?|details?|data|mentions?"
    r"|items?|comments?|remarks?)(?: (?:that )?you (?:have|saved|kept|made|took))?"
    r"(?: about| of| on| that| where| saying(?: that)?| regarding| concerning| with))"
)
_MEMORY: Final = (
    r",? (?:(?:from|in|out of|off) (?:your|the) (?:own |long-term )?(?:memor(?:y|ies)|notes?"
    r"|records?|mind|files?|database|list|logs?|head|storage|system|books?|notebook|memory banks?)"
    r"|(?:from|out of|among) (?:all|everything|what|anything|whatever)(?: that| of what)?"
    r" (?:you(?:'ve| have)?|is|was) \w+)"
)
_END: Final = (
    r"(?:,? (?:please|thanks|thank you|will you|would you|okay|ok|any ?more|any longer|now|again"
    r"|for me|for good|forever|completely|entirely|altogether|at once|right away|if you can"
    r"|if possible|if you could|either|too|from now on))"
)
_PERSONAL: Final = (
    r"(?:that (?:I|my|we|our|(?-i:[A-Z])|(?=.*\b(?:I|my|me)\b))|(?:about )?(?:my|our|where|who|whom"
    r"|whose|what|which|how|when|why|whether)\b|the fact (?:that )?|(?:about )?(?-i:[A-Z])\w+'s "
    r"|I (?:ever )?(?:said|told|mentioned))"
)
_CLAUSE: Final = re.compile(r"(?:about )?(?:that|where|wh\w+|how|the fact)\b", re.IGNORECASE)
_TELLING: Final = re.compile(rf" (?:that )?I(?:'ve| have)?(?: just)? {_SAYING}{_WHEN}$", re.I)
_OF_WORK: Final = re.compile(
    r"\b(?:messages?|essays?|text|drafts?|paragraphs?|sentences?|e-?mails?(?! address)|accounts?"
    r"|files?|photos?|pictures?|apps?|browser|history|lines?|rows?|columns?|(?:my|this) code"
    r"|calendar|documents?|questions?|reminders?|alarms?(?! code)|comments?)\b",
    re.IGNORECASE,
)
# "Forget about dieting, I love cake": what follows the comma is no reason to forget.
_REMARK: Final = re.compile(
    r"(?:,| [-–—]|;) (?:but |and |because |since |as )?(?:I|we|let's|it's|it is|it was|that's"
    r"|that was|this is|you|he|she|they|just|the)\b(?!.*\b(?:private|personal|secret|wrong|outdated"
    r"|old|mistake|mistaken|true|mixed|changed|embarrass\w*|joking|kidding|longer|regret"
    r"|sensitive|shouldn't"
    r"|confidential|relevant|any ?more|lied)\b)|\.\.\.",
)
_REASON: Final = re.compile(
    r"(?:,| [-–—]|;) (?:(?:but|and|because|since|as|that) )*(?:I|we|it|it's|that|that's|they|this"
    r"|he|she)\b.*$"
    r"| (?:because|since it|as it) .*$"
)
_REGRET: Final = (
    r"I (?:(?:really |probably )?(?:should not|shouldn't|ought not to|oughtn't to) have"
    r"|wish I (?:had not|hadn't|had never)|regret(?: that I)?|did not mean to|didn't mean to"
    r"|never meant to) (?:told|telling|tell|said|saying|say|mentioned|mentioning|mention|shared"
    r"|sharing|share)(?: (?:to )?you)?(?: that| about)? "
)
# "Please delete it.": what stands before is to be forgotten.
_SAME: Final = re.compile(
    rf"{_ASK}(?:(?:please )?(?:{_FORGET}|{_DELETE}|{_WIPE}|{_IGNORE}) (?:about )?"
    r"(?:it|that|this|them|all (?:of )?(?:it|that|this))(?: (?:again|please))*"
    rf"(?:{_MEMORY})?"
    rf"|{_NOT}{_KEEP} (?:it|that|this|them))",
    re.IGNORECASE,
)
_NOTHING: Final = frozenset(
    [
        "it",
        "that",
        "this",
        "them",
        "about",
        "it",
        "me",
        "us",
        "him",
        "her",
        "everything",
        "anything",
        "all",
        "all",
        "that",
        "all",
        "this",
        "you",
        "what",
        "something",
        "nothing",
        "those",
        "these",
        "the",
        "rest",
        "the",
        "past",
    ]
) | {"about it", "about that", "all that", "all this", "the rest", "the past", "all of it"}

# What is about to be said: "Don't save this: my PIN is 1234."
_NEXT: Final = r"(?:this|the following|what (?:I say|comes|follows) next|what follows)"
_DOWN: Final = r"(?:writ(?:e|ing)|not(?:e|ing)|tak(?:e|ing)|jot(?:ting)?) (?:this|it|that) down"
_BREAK: Final = r"(?:\s*(?:[,:;]|[-–—]+)\s*(?:but )?| but )"

_FORMS: Final = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "said",
            rf"^{_POLITE}(?:I(?:'d like to| want to| would like to| have to| must)? "
            rf"(?:take back|withdraw|retract) ){_SAID} (?P<what>.+)$",
        ),
        (
            "said",
            rf"^{_ASK}(?:pretend(?:ing)?|act(?:ing)? (?:as if|like)) (?:that )?(?:I|we) "
            r"(?:have |had )?(?:never|didn't|did not|hadn't|haven't)(?: ever)? "
            rf"{_SAYING}(?: about| of| that| anything about)? (?P<what>.+)$",
        ),
        (
            "said",
            rf"^{_ASK}{_FORGET} (?:that )?I(?:'ve| have)?(?: ever| even)? (?:said|told you"
            r"|mentioned|brought up)(?: anything)?(?: about| that)? (?P<what>.+)$",
        ),
        (
            "said",
            rf"^{_ASK}(?:{_FORGET}|{_DELETE}|{_WIPE}|{_IGNORE}|{_DOUBT}) {_SAID} (?P<what>.+)$",
        ),
        ("said", rf"^{_NOT}{_KEEP} {_SAID} (?P<what>.+)$"),
        (
            "said",
            rf"^{_ASK}(?:{_FORGET}|{_DELETE}|{_WIPE}) (?P<what>.+?){_MEMORY}$",
        ),
        (
            "said",
            rf"^{_ASK}(?:tak(?:e|ing)|cross(?:ing)?|leav(?:e|ing)|keep(?:ing)?) (?P<what>.+?)"
            rf"(?=,? (?:out of|off)){_MEMORY}$",
        ),
        (
            "turned",
            rf"^{_ASK}(?:consider|treat|regard)(?:ing)? (?P<what>.+?) (?:as |to be )?(?:unsaid"
            r"|forgotten|withdrawn|deleted|void|retracted|erased|never said|off the record"
            r"|if I(?: had|'d)? never (?:said|told you|mentioned)(?: it| that)?)$",
        ),
        (
            "turned",
            rf"^{_POLITE}I (?:no longer|don't|do not|never) want (?P<what>.+?) (?:to be"
            rf" )?(?:remembered"
            rf"|stored|saved|kept|recorded|known|on (?:file|record))(?:{_MEMORY})?$",
        ),
        (
            "turned",
            rf"^{_POLITE}I(?:'d like|'d love| would like| want| need| wish) (?P<what>.+?) (?:to"
            rf" be )?(?:deleted|forgotten|erased|removed|wiped|struck|taken out)(?:{_MEMORY})?$",
        ),
        (
            "turned",
            rf"^{_POLITE}(?:can|could|may|might|would it be possible for) (?P<what>.+?) (?:please"
            rf" |to )?be "
            rf"(?:forgotten|deleted|erased|removed|wiped|struck|taken out)(?:{_MEMORY})?$",
        ),
        (
            "turned",
            rf"^{_POLITE}(?:I(?:'d| would) (?:feel better|be (?:happier|glad|happy|grateful)"
            rf"|prefer it"
            r"|like it|rather) (?:if )?|it(?:'d| would) be (?:better|best|good|great|nice) if )"
            r"(?P<what>.+?) (?:was|were|could be|got|is|be) (?:forgotten|deleted|erased|removed"
            rf"|not remembered|no longer remembered)(?:{_MEMORY})?$",
        ),
        (
            "personal",
            rf"^{_POLITE}I(?:'d| would) (?:feel better|be (?:happier|glad|happy)|prefer it|like it"
            r"|rather|appreciate it) (?:if )?you (?:just |simply )?(?:forgot(?: about)?|deleted"
            r"|erased"
            r"|removed|no longer (?:remembered|knew)) (?P<what>"
            rf"(?:{_PERSONAL}|{_SAID}).+)$",
        ),
        ("turned", rf"^{_POLITE}let (?P<what>.+?) (?:be|stay) forgotten$"),
        (
            "said",
            rf"^{_POLITE}(?:no more|no) (?:notes?|records?|memor(?:y|ies)|entries) (?:about|of"
            rf"|on) (?P<what>.+)$",
        ),
        (
            "said",
            rf"^{_POLITE}{_SAID} (?P<what>.+?) (?:no longer counts?|does(?:n't| not) count(?: any"
            rf" ?more)?"
            r"|is void|never happened|was never said|is withdrawn|can go|may go|is off the record"
            r"|is not to be (?:remembered|kept|stored)|was not meant for you)$",
        ),
        (
            "said",
            rf"^{_POLITE}you (?:never|didn't|did not) (?:hear|heard) from me (?:about |that"
            rf" )?(?P<what>.+)$",
        ),
        ("personal", rf"^{_ASK}{_FORGET} (?P<what>{_PERSONAL}.+)$"),
        ("personal", rf"^{_ASK}(?:{_DELETE}) (?P<what>{_PERSONAL}.+)$"),
        ("personal", rf"^{_NOT}{_KEEP} (?P<what>{_PERSONAL}.+?)(?:{_MEMORY})?(?: on file)?$"),
        ("next", rf"^{_NOT}(?:{_KEEP} {_NEXT}|{_DOWN})(?: please)?{_BREAK}(?P<what>.+)$"),
        ("next", rf"^(?:this is )?(?:strictly )?off the record(?: now)?{_BREAK}(?P<what>.+)$"),
        (
            "turned",
            rf"^{_POLITE}(?:(?:about|as for|regarding|concerning) )?(?P<what>.+?)"
            rf"(?:,|:|;| [-–—]|—)+ {_ASK}(?:{_FORGET}|{_DELETE}|{_WIPE}|{_IGNORE})"
            r" (?:about )?(?:it|that|this|them|all of (?:it|that)|all that)$",
        ),
        (
            "turned",
            r"^(?:(?:about|as for|regarding|concerning) )?(?P<what>.+?)(?:,|:|;| [-–—]|—)+ "
            rf"(?:but |so |and )?{_NOT}(?:{_KEEP} (?:it|that|this|them)|{_DOWN})$",
        ),
        (
            "turned",
            rf"^{_POLITE}(?P<what>.+?) (?:should|can|must|may|needs? to|ha(?:s|ve) to|(?:is|are) to"
            r"|ought to|could) (?:now |please |also )*(?:(?:no longer|not) be (?:remembered|stored"
            r"|kept|saved|recorded|retained)"
            rf"|be (?:forgotten|deleted|erased|removed|wiped|struck))(?:{_MEMORY})?$",
        ),
        (
            "turned",
            r"^(?P<what>.+?) (?:is|are) (?:nothing|not something|no longer something) (?:that )?"
            r"you (?:should|need to|have to|ought to) (?:remember|know|keep|store)$",
        ),
    )
)


def request_to_forget(text: str) -> tuple[str, bool] | None:
    """What is to be forgotten, as the speaker words it, and whether the request is unmistakable.

    `("that I live in Rome" -> "I live in Rome")`. Unmistakable are those that speak of what was
    said or noted; others count only where an assistant is spoken to. None for all other sentences.
    """
    bare = " ".join(text.replace("’", "'").split()).rstrip(" .!?…")
    while (shorter := re.sub(rf"{_END}$", "", bare, flags=re.I)) != bare:
        bare = shorter.rstrip(" .,!?")
    reason = _REASON.search(bare)
    if re.match(r"\w+ing\b", bare):
        return None  # "Forgetting my umbrella cost me an hour"
    for name, form in _FORMS:
        found = form.match(bare)
        if found is None and reason is not None and not _REMARK.search(reason[0]):
            found = form.match(bare[: reason.start()])
        if found is None or (
            name not in ("said", "next") and _is_no_request(name, text, found["what"])
        ):
            continue
        what, told = _topic(found["what"])
        if what is None:
            return None
        return what, name == "said" or told
    return None


def asks_to_forget_next(text: str) -> bool:
    """Whether a sentence asks not to keep what comes behind it: `Off the record.`"""
    bare = " ".join(text.replace("’", "'").split()).rstrip(" .!?…:,")
    asked = (
        rf"{_NOT}(?:{_KEEP} {_NEXT}|{_DOWN})(?:,? please)?"
        r"|(?:this is )?(?:strictly )?off the record"
    )
    return re.fullmatch(asked, bare, re.IGNORECASE) is not None


def asks_to_forget_that(text: str) -> bool:
    """Whether a sentence asks to forget the one before it: `Please delete that.`

    "Forget it" alone says no more than "never mind".
    """
    bare = " ".join(text.replace("’", "'").split()).rstrip(" .!?…")
    while (shorter := re.sub(rf"{_END}$", "", bare, flags=re.I)) != bare:
        bare = shorter.rstrip(" .,!?")
    idle = re.fullmatch(
        r"(?:oh |well |just |so )*(?:forget|drop|scratch|never mind)(?: about)? \w+", bare, re.I
    )
    return _SAME.fullmatch(bare) is not None and (idle is None or "please" in text.casefold())


def _is_no_request(name: str, text: str, what: str) -> bool:
    clause = _CLAUSE.match(what) is not None
    if not clause and _OF_WORK.search(what) and not _TELLING.search(what):
        return True
    if _REMARK.search(what) and not what.casefold().startswith("that "):
        return True
    if name == "turned":
        named = rf"(?:(?i:{_SAID}|{_REGRET})|(?i:my|our) |[A-Z]\w+'s |(?i:that (?:I|my)) )"
        return re.match(named, what) is None
    # "Remove my name from the draft": from something that is no memory.
    elsewhere = r" (?:from|in|on|off) (?:the|this|that|my|your) (?:\w+ ){0,2}\w+$"
    return not clause and re.search(elsewhere, what) is not None


def _topic(what: str) -> tuple[str | None, bool]:
    """What is to be forgotten without "what I said about" around it, and whether that was there."""
    told = False
    said = re.match(rf"(?:(?:about )?{_SAID} |{_REGRET})", what, re.IGNORECASE)
    if said and len(what) > said.end():
        what, told = what[said.end() :], True
    if ending := _TELLING.search(what):
        what, told = what[: ending.start()], True
    what = re.sub(rf"(?:{_MEMORY})$", "", what, flags=re.I)
    what = re.sub(r"^(?:about )?(?:the fact )?(?:that )?(?=\w)(?:about )?", "", what, flags=re.I)
    while (shorter := re.sub(rf"{_END}$", "", what, flags=re.I)) != what:
        what = shorter
    what = what.strip(" ,.:;-–—")
    return (None if what.casefold() in _NOTHING or len(what) < 2 else what), told
