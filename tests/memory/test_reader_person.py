"""Who "I", "you", 我 and 你 are, written out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.memory.reader import person_chinese, person_english
from memograd.memory.reader.person_english import is_past, third_person


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("I am a nurse", "Caroline is a nurse"),
        ("I'm a nurse", "Caroline is a nurse"),
        ("I've moved", "Caroline has moved"),
        ("I'd love to go", "Caroline would love to go"),
        ("I'd been there", "Caroline had been there"),
        ("I'll go and I won't wait", "Caroline will go and Caroline won't wait"),
        ("I live in Rome and work at Fiat", "Caroline lives in Rome and works at Fiat"),
        ("I really love hiking", "Caroline really loves hiking"),
        ("I don't like tea", "Caroline doesn't like tea"),
        ("I went home and I cried", "Caroline went home and Caroline cried"),
        ("I can swim", "Caroline can swim"),
        ("I study, watch and try", "Caroline studies, watch and try"),
        ("My sister told me", "Caroline's sister told Caroline"),
        ("I walk my dog", "Caroline walks their dog"),
        ("a friend of mine", "a friend of Caroline's"),
        ("We took our kids", "Caroline and others took their kids"),
        ("My wife and I live here", "Caroline's wife and Caroline live here"),
        ("Bob and I live here", "Bob and Caroline live here"),
        ("I live in Boston and I love tea", "Caroline lives in Boston and Caroline loves tea"),
        ("My name is Ann and I love tea", "Caroline's name is Ann and Caroline loves tea"),
        ("Since we last talked I moved", "Since Caroline and Melanie last talked Caroline moved"),
        ("The doctor told me I'm ill", "The doctor told Caroline that Caroline is ill"),
        ("for me I think", "for Caroline, Caroline thinks"),
        ("I I still want it", "Caroline still wants it"),
        ("I, I want it", "Caroline wants it"),
        ("I nears gret at it", "Caroline nears gret at it"),
        ("I focus on it", "Caroline focuses on it"),
        ("boerie and i are home", "boerie and Caroline are home"),
        ("I first had it here", "Caroline first had it here"),
        ("I love you", "Caroline loves Melanie"),
        ("I know you moved", "Caroline knows Melanie moved"),
        ("I saw your dog", "Caroline saw Melanie's dog"),
        ('I read "I and my chimney"', 'Caroline read "I and my chimney"'),
        ("I have some me-time in the US", "Caroline has some me-time in the US"),
        ("the doctor said mine's 11", "the doctor said Caroline's own is 11"),
        ("in a wet winter mine sit in clay", "in a wet winter Caroline's own sit in clay"),
        ("that's hers, not mine", "that's hers, not Caroline's"),
        ("I rather wish I knew", "Caroline rather wishes Caroline knew"),
        ("I aint proud", "Caroline ain't proud"),
        ("I've said yes God help me, from May", "Caroline has said yes, from May"),
        ("She forgave me for it", "She forgave Caroline for it"),
        ("I row, did I tell you, with my nan", "Caroline rows, with their nan"),
        ("He woke at the Libera me.", 'He woke at the "Libera me".'),
        (
            "I grow dahlias and look after my nan",
            "Caroline grows dahlias and looks after their nan",
        ),
    ],
)
def test_english(said: str, meant: str) -> None:
    assert person_english.resolve_person(said, "Caroline", "Melanie") == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("我住在北京", "张三住在北京"),
        ("我的狗叫旺财", "张三的狗叫旺财"),
        ("我上司今年44岁", "张三的上司今年44岁"),
        ("我的上司他在广东上班", "张三的上司在广东上班"),
        ("我们去爬山了", "张三等人去爬山了"),
        ("我们公司在上海", "张三的公司在上海"),
        ("我自己做饭", "张三做饭"),
        ("我喜欢你的狗", "张三喜欢李四的狗"),
        ("我读了《我的前半生》", "张三读了《我的前半生》"),
        ("我家猫五岁", "张三家猫五岁"),
        ("我家在六楼", "张三家在六楼"),
        ("我们家女儿六岁", "张三家的女儿六岁"),
        ("我们房贷每月6800", "张三的房贷每月6800"),
        ("我們老闆很凶", "张三的老闆很凶"),
        ("我老伴儿不去", "张三的老伴儿不去"),
        ("我媳妇生气了", "张三的媳妇生气了"),
        ("我前男友来了", "张三的前男友来了"),
        ("我先生气了", "张三先生气了"),
        ("我对象是成都人", "张三的对象是成都人"),
        ("我对象棋没兴趣", "张三对象棋没兴趣"),
        ("我我我想去", "张三想去"),
        ("医生告诉我我病了", "医生告诉张三，张三病了"),
    ],
)
def test_chinese(said: str, meant: str) -> None:
    assert person_chinese.resolve_person(said, "张三", "李四") == meant


WORDS = [
    "I",
    "me",
    "my",
    "we",
    "us",
    "our",
    "am",
    "was",
    "have",
    "live",
    "really",
    "and",
    "but",
    "the",
    "dog",
    "'m",
    "'ve",
]


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_no_first_person_is_left_in_english(words: list[str]) -> None:
    said = " ".join(words).replace(" '", "'")
    resolved = person_english.resolve_person(said, "Zed", None)
    assert not person_english.FIRST_PERSON.search(resolved)


@given(st.text(alphabet="我你们的去公司妈他己国", max_size=12))
def test_no_first_person_is_left_in_chinese(said: str) -> None:
    resolved = person_chinese.resolve_person(said, "Zed", None)
    assert "我" not in resolved.replace("我国", "")


@pytest.mark.parametrize("name", ["My", "Me", "James", "\\1", "Us", "我", "自己"])
def test_a_name_stays_as_it_is(name: str) -> None:
    owner = f"{name}'" if name.endswith("s") else f"{name}'s"
    for resolve, said, meant in (
        (person_english.resolve_person, "I go", f"{name} goes"),
        (person_english.resolve_person, "My dog", f"{owner} dog"),
        (person_english.resolve_person, "It met me", f"It met {name}"),
        (person_chinese.resolve_person, "我住在北京", f"{name}住在北京"),
        (person_chinese.resolve_person, "我们走", f"{name}等人走"),
    ):
        assert resolve(said, name, "Bob") == meant


@given(st.text(max_size=60), st.text(min_size=1, max_size=10))
def test_any_text_and_name(text: str, name: str) -> None:
    person_english.resolve_person(text, name, name)
    person_chinese.resolve_person(text, name, name)


def test_verbs() -> None:
    present = {"live": "lives", "go": "goes", "try": "tries", "play": "plays", "watch": "watches",
               "have": "has", "don't": "doesn't", "need": "needs", "feed": "feeds"}  # fmt: skip
    assert {verb: third_person(verb) for verb in present} == present
    for verb in ("went", "moved", "can", "will", "didn't", "read", "put"):
        assert third_person(verb) == verb
    assert is_past("moved") and is_past("went") and not is_past("need")
