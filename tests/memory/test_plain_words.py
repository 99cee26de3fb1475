"""Idioms are read in plain words; all other texts are read as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd import Memory
from memograd.memory.relations.plain_words import plainly

WHEN = "2024-05-07T18:30:00+00:00"


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("We had to have Bella put down in March", "Bella has died in March"),
        ("our old cat crossed the rainbow bridge", "our old cat died"),
        ("Priya and I called it quits.", "Priya and I broke up."),
        ("knocked the vaping on the head", "quit the vaping"),
        ("I got the boot from Tesco", "I was fired from Tesco"),
        ("Sanjay has taken over from Petra", "Petra left and Sanjay replaced Petra"),
        ("our third was born on Sunday", "we have three kids now, born on Sunday"),
        ("sold the van to my brother", "sold the van"),
        (
            "a couple bought Daisy May off us",
            "a couple bought Daisy May from us, we sold Daisy May",
        ),
        ("跟小周领完证了", "跟小周领了结婚证,结婚了"),
        ("今天第一天去海信上班", "今天换了工作,现在在海信上班,第一天"),
        ("上个月被炒了鱿鱼", "上个月被公司辞退"),
        ("我跟阿强吹了", "我跟阿强分手了"),
        ("儿子满八岁了", "儿子现在八岁了"),
        ("老三昨天出生", "现在有三个孩子了,老三昨天出生"),
    ],
)
def test_an_idiom_is_read_in_plain_words(said: str, read: str) -> None:
    assert plainly(said) == read


@pytest.mark.parametrize(
    "said",
    [
        "I put the kids to bed and went to sleep",
        "The homework is done.",
        "I work at the sack factory",
        "We got the boat from Fife",
        "put the dog down for a nap",
        "The party is over",
        "finally put Noah to sleep",
        "I had to put the baby to sleep",
        "had to put the kids down and then my foot down",
        "the baby was put to sleep by his gran",
        "got the push notification",
        "Mum and I are done.",
        "had to put him down for a nap",
        "I was put to sleep for the operation",
        "She got passed over for the job",
        "We slipped away from the party",
        "My favourite show got axed",
        "We packed in a lot of sights",
        "The kitchen is painted, we're done.",
        "老死不相往来",
        "跟我吹了半天",
        "我没熬过夜",
        "把门踹了",
        "我家老三今年五岁",
        "这首歌好快乐了",
        "风把门吹了",
    ],
)
def test_what_only_looks_like_one_stays(said: str) -> None:
    assert plainly(said) == said


@given(st.text(alphabet="abc xyz,.我你他 0123", max_size=60))
def test_a_text_without_an_idiom_stays_letter_by_letter(text: str) -> None:
    assert plainly(text) == text


def test_an_idiom_ends_what_was_told_and_its_words_are_kept(tmp_path) -> None:
    with Memory.open(tmp_path, reader="trained", manager="trained", env_file=None) as memory:
        memory.add("We have a spaniel called Bella.", user_id="ann", timestamp=WHEN)
        memory.add("Had to have Bella put to sleep on Monday.", user_id="ann", timestamp=WHEN)
        kept = "\n".join(one["memory"] for one in memory.get_all(user_id="ann")["results"])
    assert "until 7 May 2024" in kept
    assert "put to sleep" in kept and "has died" not in kept
