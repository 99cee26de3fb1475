"""Idioms as plain words, for the relation model to read.

    We had to have Duke put to sleep on Monday.   ->  Duke has died on Monday.
    knocked the fags on the head                  ->  quit the fags
    got the sack from Greggs                      ->  was fired from Greggs

A small encoder learns what many write; what few of its texts say it takes for a remark. What is
remembered keeps the words as they were said: only the model reads these.

Invariant: a text without one of these idioms stays as it is, letter by letter; no idiom reaches
beyond its sentence. Pure functions.
"""

from __future__ import annotations

import re
from typing import Final

_PET: Final = (
    r"(?:my|our|the|poor|old) (?:[a-z]+ )?(?:dog|cat|horse|pony|rabbit|hamster|pup|kitten|goat)"
)
_HAD_TO: Final = r"(?:(?:i|we|they)(?:['’]?ve| have)? )?(?:had to|have to|having to)"
_END: Final = r"(?=\W*$|[.,;!?])"
_LATER: Final = r"(?! (?:for|at|with|in (?:his|her|my|our|the|writing))\b)"  # "for the scan"
_IDIOMS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), plain)
    for pattern, plain in (
        # A child is put to sleep; only what somebody has done to an animal, or to one by its
        # name, ends it.
        (rf"\b(?:{_HAD_TO} )?(?:have|had|get|got) (?P<who>{_PET}|(?-i:[A-Z][\w'’-]+)|him|her)"
         rf" put (?:to sleep|down)\b{_LATER}", r"\g<who> has died"),
        (rf"\b{_HAD_TO} put (?P<who>{_PET}) to sleep\b{_LATER}", r"\g<who> has died"),
        (r"\bcross(?:ed|ing) (?:over )?the rainbow bridge\b", "died"),
        (r"\b(?:slipped away(?! from)|passed over(?! (?:for|by))|breathed (?:his|her|its) last"
         r"|kicked the bucket|popped (?:his|her) clogs|gave up the ghost"
         r"|didn['’]?t pull through)\b", "died"),
        (r"(?P<who>\band (?:i|me)|\bme and \w+)(?:['’]?ve| have)?"
         rf" called it (?:a day|quits){_END}", r"\g<who> broke up"),
        (rf"\bwe(?:['’]?ve| have)? called it quits{_END}", "we broke up"),
        (rf"\b(?P<who>(?-i:[A-Z])\w+) is history{_END}", r"\g<who> and I broke up"),
        (r"(?P<i>(?:^|[.,;!?]\s*|\bi(?:['’]?ve| have)? )(?:just |finally )?)(?:got|was|been)"
         r" (?:canned|sacked|axed)\b", r"\g<i>was fired"),
        (r"\b(?:got|been|was) (?:given )?(?:the (?:sack|boot|chop|push(?! notif)|axe|elbow"
         r"|heave[- ]ho)|my (?:p45|marching orders|cards))\b|\blost my job\b", "was fired"),
        (r"\b(?:i['’]?m|i am|i['’]?ve been|been) out of work\b", "I was fired and have no job"),
        (r"\bhung up my (?:apron|boots|hat|gloves|whistle|tools|scrubs)\b", "retired and quit"),
        (r"\bknock(?:ed|ing) (?P<what>(?:the |my )?\w+(?: \w+)?) on the head\b", r"quit \g<what>"),
        (r"\b(?:packed|jacked|chucked|sacked|jibbed) (?:in|off)\b(?! (?:an?|some|so|as|all|every"
         r"|lots|loads|more|with|there|here|\d+)\b)", "quit"),
        (r"\b(?P<what>(?:the|my) \w+|[\w'’]+ing) (?:has|have|['’]s|got) been (?:binned|knocked on"
         r" the head|sacked off|shelved)\b", r"quit \g<what>"),
        (r"\b(?:i['’]?m|i am) all about (?:the )?(?=\w)", "I love "),
        (r"\bgot shot of\b", "got rid of"),
        (r"\bsold (?P<what>(?:the|my|our) (?:old )?\w+) to (?:(?:my|our|his|her|a|the) \w+"
         r"|(?-i:[A-Z])\w+)", r"sold \g<what>"),
        *(
            (rf"\b(?:(?:baby )?(?:number|no\.?) {number}|(?:our|my) {nth})"
             r" (?:was born|(?:has )?arrived|has landed|came along)\b",
             f"we have {number} kids now, born")
            for number, nth in (("two", "second"), ("three", "third"), ("four", "fourth"))
        ),
        (r"\bbought (?P<what>(?:the |my |our )?\w+(?: \w+){0,2}) off (?:me|us)\b",
         r"bought \g<what> from us, we sold \g<what>"),
        (r"\bwent (?:to|for) (?:the )?(?:scrap(?:yard| heap)?|breakers?|knackers?(?: yard)?)\b",
         "was scrapped and is gone"),
        (r"\b(?:tied|tying) the knot\b|\bgot hitched\b", "got married"),
        (r"\b(?P<who>(?-i:[A-Z][\w'’-]+)) is (?:officially|finally|now) my (?P<kin>wife|husband)\b",
         r"I married \g<who>, who is no longer my fiancée but my \g<kin>"),
        (r"\b(?P<age>[a-z]+|\d+) candles for (?P<who>(?-i:[A-Z])\w+)\b",
         r"\g<who> turned \g<age>"),
        (r"\b(?P<new>(?-i:[A-Z])\w+) (?:took|has taken|['’]s taken) over from"
         r" (?P<old>(?-i:[A-Z])\w+)\b", r"\g<old> left and \g<new> replaced \g<old>"),
        ("(?:没|沒)(?:有)?碰(?:过|過)?(?P<what>烟|酒|烟酒)", r"戒了\g<what>"),
        ("提桶跑路|卷铺盖(?:走人)?(?!了?他)", "离职"),
        ("被(?:公司|老板)?炒了?鱿鱼", "被公司辞退"),
        ("把(?:公司|老板)(?:给)?炒了(?:鱿鱼)?", "从公司辞职了"),
        ("(?P<who>[跟和与同](?!我吹)[^，,。！!\\s]{1,6})吹了(?=$|[\\s，,。！!啊哈吧])",
         r"\g<who>分手了"),
        ("第一天[去到](?P<where>[^，,。！!\\s]{1,10}?)(?P<does>上班|报到|工作)",
         r"换了工作,现在在\g<where>\g<does>,第一天"),
        ("一拍两散", "分手"),
        ("领(?:完|好)?了?(?:结婚)?证(?=了|啦|$|[，,。！!])", "领了结婚证,结婚"),
        ("(?P<who>[把被](?!门|车|桌|椅|球)[^，,。！!\\s]{1,6})踹了", r"\g<who>甩了"),
        ("没熬过(?!夜)(?:这个|那个)?(?:[春夏秋冬]天|今[天晚]|昨[天晚])?", "去世了"),
        ("安乐死?(?=了)|老死(?!不)", "去世"),
        ("办了?喜?酒席?(?=了|$|[，,。！!])", "办婚礼结婚"),
        ("(?:都|满|已经满)(?P<age>[一二三四五六七八九十百\\d]{1,3}岁)(?=了|啦)", r"现在\g<age>"),
        ("老(?P<n>[三四五])(?=(?:[昨今前]天|刚刚?)?(?:落地|出生|降生|生了))",
         r"现在有\g<n>个孩子了,老\g<n>"),
    )
)  # fmt: skip
_HINTS: Final = re.compile(
    r"put|rainbow|slipped|passed over|breathed|bucket|clogs|ghost|pull through|called it|over"
    r"|history|got|canned|sacked|axed|given|my job|out of work|hung|head"
    r"|packed|jacked|chucked|jibbed|been|went|knot|my (?:wife|husband)|candles|sold|born|arrived"
    r"|landed|along|all about|off (?:me|us)|[碰桶盖鱿炒吹散踹熬乐酒岁证]|第一天|老[死三四五]",
    re.IGNORECASE,
)


def plainly(text: str) -> str:
    """The text with plain words for the idioms in it."""
    if not _HINTS.search(text):
        return text
    for idiom, plain in _IDIOMS:
        text = idiom.sub(plain, text)
    return text
