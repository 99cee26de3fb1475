"""Reading one English sentence: dropped, or made to stand alone.

Each kind of sentence has its place in `read_english`, tried in this order: what is to be forgotten,
how the agent is to act, requests and reactions, what is true no longer, plain statements, bare
answers. Pure functions.
"""

from __future__ import annotations

import re
from dataclasses import replace

from memograd.memory.reader import person_english
from memograd.memory.reader import screen_english as screen
from memograd.memory.reader.dates import resolve_english
from memograd.memory.reader.forget import request_to_forget
from memograd.memory.reader.person_english import is_past, third_person
from memograd.memory.reader.setting import Draft, Setting, finished
from memograd.memory.records.items import Kind
from memograd.memory.statements import wording

_PHOTO = re.compile(r"\b(?:here's|here is|here are|this is|these are|pics?|photo|picture)\b", re.I)


def read_english(sentence: str, setting: Setting, *, first: bool) -> tuple[bool, Draft | None]:
    """Whether the sentence leans on the one before, and the draft, None where it is dropped."""
    names = tuple(name for name in setting.speakers)
    bare = screen.strip_openers(sentence.replace("’", "'"), names)
    if (to_forget := request_to_forget(bare)) and (setting.to_agent or to_forget[1]):
        return False, replace(_say_english(to_forget[0], setting, retracts=True), forget=True)
    if not bare or screen.is_question(bare):
        return False, None
    name = setting.name("en")
    if setting.to_agent:
        if called := re.match(
            r"(?:please |you can )?call me (?P<name>[\w .'-]{1,40})$", bare.rstrip(".!"), re.I
        ):
            return False, Draft(
                f"{name} wants to be called {called['name']}.", None, "en", Kind.CORE
            )
        if screen.is_procedural(bare):
            return False, _procedural_english(bare, setting)
    elif screen.is_procedural(bare) and bare.casefold().startswith(("to ", "in order to")):
        return False, replace(_say_english(bare, setting), kind=Kind.PROCEDURAL)
    noted = screen.strip_note(bare)
    if noted == bare:
        if setting.turn.caption and _PHOTO.search(bare) and len(bare.split()) > 4:
            shown = f"{name} shared a photo ({setting.turn.caption}): "
            draft = _say_english(bare, setting)
            return False, replace(draft, text=shown + draft.text)
        if screen.is_request(bare) or screen.is_reaction(bare):
            # "You won't believe it - I got a mentor!": the news stand behind the dash.
            _, _, noted = re.sub(r"\s[-–—]+\s|—", "\0", bare, count=1).partition("\0")
            if not re.match(r"(?:I|my|we|our)\b", noted, re.I) or screen.is_reaction(noted):
                return False, None
    ended = _no_longer(noted)
    if ended:
        return False, _say_english(ended, setting, retracts=True)
    if introduced := re.match(
        r"^(?:I'm|I am|this is) (?P<name>[A-Z][a-z]+(?: [A-Z][a-z]+)?)$", noted.rstrip(".!")
    ):
        if introduced["name"].casefold() == name.casefold():
            return False, None
        if not re.search(r"(?:ish|ese|an|ch)$", introduced["name"]):
            return False, _say_english(f"My name is {introduced['name']}.", setting)
    if whole := completed(noted):
        return False, _say_english(whole, setting)
    if re.match(
        r"(?:really )?(?:made|makes|gave|gives|helps|helped|taught|felt) me\b", noted, re.I
    ):
        noted = f"It {noted[0].lower()}{noted[1:]}"
    leaning = screen.leans_on_previous(noted)
    if leaning and first and screen.praises(noted):
        return False, None
    if leaning and first and setting.turn.caption and not setting.question:
        shown = f"{name} shared a photo ({setting.turn.caption}): "
        draft = _say_english(noted, setting)
        return False, replace(draft, text=shown + draft.text)
    if person_english.FIRST_PERSON.search(noted) and not (leaning and first and setting.question):
        return leaning, _say_english(noted, setting)
    if first and setting.question and (leaning or _is_fragment(noted)):
        if wording(noted).terms <= wording(setting.before).terms:
            return False, None  # an echo of what the other said
        said = _say_english(noted, setting)
        return True, replace(said, text=f'{name}, asked "{setting.question}", said: {said.text}')
    if leaning:
        return True, None if screen.praises(noted) else _say_english(noted, setting)
    if not screen.is_statement(noted, (*names, *_shortened(names))):
        return False, None
    return False, _say_english(noted, setting)


def _say_english(text: str, setting: Setting, *, retracts: bool = False) -> Draft:
    resolved = resolve_english(text, setting.day)
    said = person_english.resolve_person(resolved.text, setting.name("en"), setting.other("en"))
    return Draft(finished(said, "."), resolved.day, "en", retracts=retracts)


def _procedural_english(bare: str, setting: Setting) -> Draft:
    """`Always answer in Chinese` -> `User wants the assistant to always answer in Chinese.`"""
    name = setting.name("en")
    text = re.sub(r"^please |,? please(?=\W*$)", "", bare, flags=re.I).strip()
    wish = re.match(
        r"I(?:'d| would)? (?:like|want|prefer|need"
        r"|expect) (?:for )?you (?P<not>not )?to (?P<what>.+)",
        text,
        re.I,
    )
    if wish:
        text = f"{wish['not'] or ''}to {wish['what']}"
    elif re.match(r"(?:I|when(?:ever)?|to|in order|first|step)\b", text, re.I):
        return replace(_say_english(text, setting), kind=Kind.PROCEDURAL)
    else:
        later = re.match(
            r"(?P<when>from now on|in (?:the )?future"
            r"|going forward)[, ]+(?:please )?(?P<what>.+?)(?P<end>[.!]*)$",
            text,
            re.I,
        )
        if later:
            text = f"{later['what']} {later['when'].casefold()}"
        text = text[0].lower() + text[1:]
        text = re.sub(
            r"^(?:don't|do not|stop)(?: ever)? (\w+)", lambda m: f"not to {_base(m[1])}", text
        )
        text = text if text.startswith("not to") else f"to {text}"
    said = person_english.resolve_person(text, name, "the assistant")
    return Draft(finished(f"{name} wants the assistant {said}", "."), None, "en", Kind.PROCEDURAL)


def _base(verb: str) -> str:
    """`using` -> `use`, for the few verbs that follow "stop"."""
    known = {"using": "use", "calling": "call", "sending": "send", "asking": "ask",
             "mentioning": "mention", "including": "include", "adding": "add"}  # fmt: skip
    return known.get(verb, verb)


def _no_longer(text: str) -> str | None:
    """What was so: `I like tea` in "I no longer like tea" and "I don't like tea any more"."""
    bare = text.rstrip(" .!")
    if re.search(r"[;]|\b(?:but|because|instead|since|now)\b", bare):
        return None  # it says more than that something ended, such as what is so now
    if found := re.match(r"(?P<s>.+?) (?P<be>am|is|are|'m)? ?no longer (?P<rest>.+)$", bare, re.I):
        be = f"{found['be']} " if found["be"] else ""
        return f"{found['s']} {be}{found['rest']}"
    if found := re.match(
        r"(?P<s>.+?) (?:(?P<do>do|does)(?:n't| not)|(?P<be>am|is|are)(?:n't| not))"
        r" (?P<rest>.+?) (?:any ?more|any longer)$", bare, re.I,
    ):  # fmt: skip
        if found["be"]:
            return f"{found['s']} {found['be']} {found['rest']}"
        verb, _, rest = found["rest"].partition(" ")
        verb = third_person(verb) if found["do"].casefold() == "does" else verb
        return f"{found['s']} {verb} {rest}".rstrip()
    if found := re.match(r"I'm not (?P<rest>.+?) (?:any ?more|any longer)$", bare, re.I):
        return f"I'm {found['rest']}"
    return None


_FINITE = re.compile(
    r"\b(?:is|are|was|were|isn't|aren't|wasn't|weren't|don't|doesn't|let|has|have|had|do|does|did|can|could|will|would"
    r"|makes?|brings?"
    r"|helps?|takes|reminds?|gives?|gave|made|means?|shows?|keeps?|teaches|lets)\b|'s |'re ",
    re.IGNORECASE,
)


# Words in -ing that begin a sentence without saying what somebody does.
_NOT_DOING = """
    according anything being during evening everything having morning nothing seeing
    something speaking taking talking exciting amazing interesting inspiring boring tiring
    exhausting relaxing rewarding fulfilling challenging confusing surprising touching thrilling
    refreshing stunning
"""
_NO_ACTIVITY = frozenset(_NOT_DOING.split())


def completed(text: str) -> str | None:
    """`Researching adoption agencies` -> `I'm researching adoption agencies`, None elsewhere."""
    found = re.match(
        r"(?P<adverb>(?:just|already|finally|still|recently|currently"
        r"|also) )?(?P<verb>[\w']+)(?= )",
        text,
        re.I,
    )
    if not found:
        return None
    verb, adverb = found["verb"].casefold(), (found["adverb"] or "").casefold()
    rest = text[found.end() :]
    clause = re.split(r"[,;—–]| - ", rest)[0]
    if verb == "gonna" and not clause.startswith(" be "):  # "Gonna be a great night": not I
        return f"I'm {adverb}going to{rest}"
    if verb == "been":
        return f"I've {adverb}been{rest}"
    if verb.endswith("ing") and len(verb) > 5 and verb not in _NO_ACTIVITY:
        return None if _FINITE.search(clause) else f"I'm {adverb}{verb}{rest}"
    if (
        is_past(verb)
        and verb not in {"had", "was", "were", "did"}
        and text[0].isupper()
        and not _FINITE.search(clause)
    ):
        return f"I {adverb}{verb}{rest}"
    return None


def _is_fragment(text: str) -> bool:
    return not _FINITE.search(text) and len(text.split()) <= 14


def _shortened(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name[:length] for name in names for length in range(3, len(name)))
