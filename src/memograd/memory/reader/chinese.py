"""Reading one Chinese sentence: dropped, or made to stand alone.

The twin of `english`, with the same order of questions. Tested in `tests/memory/test_reader.py`.
Pure functions.
"""

from __future__ import annotations

import re
from dataclasses import replace

from memograd.memory.items import Kind
from memograd.memory.reader import person_chinese
from memograd.memory.reader import screen_chinese as screen
from memograd.memory.reader.dates_chinese import resolve_chinese
from memograd.memory.reader.forget_chinese import request_to_forget
from memograd.memory.reader.setting import Draft, Setting, finished


def read_chinese(sentence: str, setting: Setting, *, first: bool) -> tuple[bool, Draft | None]:
    """Whether the sentence leans on the one before, and the draft, None where it is dropped."""
    bare = screen.strip_openers(sentence)
    if (to_forget := request_to_forget(bare)) and (setting.to_agent or to_forget[1]):
        return False, replace(_say_chinese(to_forget[0], setting, retracts=True), forget=True)
    if not bare or screen.is_question(bare):
        return False, None
    name = setting.name("zh")
    if setting.to_agent:
        if called := screen.name_to_call(bare):
            return False, Draft(f"{name}希望被称呼为{called}。", None, "zh", Kind.CORE)
        if screen.is_procedural(bare):
            said = person_chinese.resolve_person(bare, name, "助手")
            asked = said if said.startswith(name) else f"{name}要求：{said}"
            return False, Draft(finished(asked, "。"), None, "zh", Kind.PROCEDURAL)
    noted = screen.strip_note(bare)
    if noted == bare and (screen.is_request(bare) or screen.is_reaction(bare)):
        return False, None
    if ended := _no_longer_chinese(noted):
        return False, _say_chinese(ended, setting, retracts=True)
    if introduced := re.match(
        r"^我(?:的名字)?(?:叫|名叫|是叫)(?P<name>[^，,。]{1,12})$", noted.rstrip("。.！! ")
    ):
        draft = _say_chinese(f"我叫{introduced['name']}", setting)
        return False, replace(draft, kind=Kind.CORE)
    leaning = screen.leans_on_previous(noted)
    short = not re.search(r"[我是有在]", noted) and len(noted) <= 14
    if first and setting.question and short:
        answer = _say_chinese(noted, setting)
        return False, replace(answer, text=f"{name}被问“{setting.question}”时说：{answer.text}")
    if not leaning and not screen.is_statement(noted):
        return False, None
    return leaning, _say_chinese(noted, setting)


def _say_chinese(text: str, setting: Setting, *, retracts: bool = False) -> Draft:
    resolved = resolve_chinese(text, setting.day)
    said = person_chinese.resolve_person(resolved.text, setting.name("zh"), setting.other("zh"))
    return Draft(finished(said, "。"), resolved.day, "zh", retracts=retracts)


def _no_longer_chinese(text: str) -> str | None:
    """What was so: `我喜欢咖啡` in 我不再喜欢咖啡 and 我不喜欢咖啡了."""
    bare = text.rstrip("。.！! ")
    if re.search(r"[，,；;]", bare):
        return None  # it says more than that something ended
    if found := re.match(
        r"(?P<s>.{1,12}?)(?:已经|现在|以后)?(?:不再|再也不)(?P<rest>.+?)了?$", bare
    ):
        return f"{found['s']}{found['rest']}"
    if found := re.match(
        r"(?P<s>.{1,12}?)(?:已经|现在)?不(?P<rest>(?:喜欢|爱|住在?|在|用|吃|喝|养|做|是|想|去|开|学).+?)了$",
        bare,
    ):
        return f"{found['s']}{found['rest']}"
    return None
