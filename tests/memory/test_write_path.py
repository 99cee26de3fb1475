"""What the trained write path does whatever its model says.

An adversary answers for the model: any probabilities at all. What it does with the one that ships
stands in `test_shipped_write_path.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memograd.memory import Memory
from memograd.memory.manager import RelationManager
from memograd.memory.manager.cues import of_other_person
from memograd.memory.manager.past import named_in
from memograd.memory.manager.substitution import corrected
from memograd.memory.reader import TrainedReader
from memograd.memory.reader.sentences import (
    OwnWords,
    foreign,
    split_sentences,
)
from memograd.memory.relations import CLOSING, RELATIONS, WORTHS, Thresholds

BEHAVIOUR = Path(__file__).resolve().parents[1] / "behaviour"
CASES = [
    json.loads(line)
    for name in ("en", "zh")
    for line in (BEHAVIOUR / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
]


class Answering:
    """Stands in for a relation model: says of every pair and segment what it was told to say."""

    class about:
        thresholds = Thresholds()

    def __init__(self, relation: str = "unrelated", worth: str = "fact", sure: float = 0.9) -> None:
        self.relation, self.worth_, self.sure = relation, worth, sure

    def relate(self, message: str, before: Any, items: Sequence[str], role: str = "user") -> Any:
        return self._rows(len(items), RELATIONS, self.relation)

    def worth(self, message: str, before: Any, segments: Sequence[str], role: str = "user") -> Any:
        return self._rows(len(segments), WORTHS, self.worth_)

    def may_close(self, message: str, before: Any, segments: Sequence[str]) -> bool:
        return True

    points = False
    crowded = None
    reads_twice = False
    requests = None
    few = None

    def other_value(self, message: str, before: Any, item: str) -> None:
        return None

    def holds_secret(self, message: str, before: Any, segments: Sequence[str]) -> Any:
        return np.zeros(len(segments), bool)

    def likeness(self, value: str, others: Sequence[str]) -> list[float]:
        return [0.0] * len(others)

    def _rows(self, n: int, names: Sequence[str], named: str) -> Any:
        rest = (1 - self.sure) / (len(names) - 1)
        rows = np.full((n, len(names)), rest, np.float32)
        rows[:, list(names).index(named)] = self.sure
        return rows


def opened(path: Path, embedder: Any, model: Any) -> Memory:
    return Memory.open(
        path,
        embedder=embedder,
        reader=TrainedReader(model),
        manager=RelationManager(model),
        env_file=None,
    )


def texts(memory: Memory, user: str = "u") -> list[str]:
    return [one["memory"] for one in memory.get_all(user_id=user)["results"]]


@pytest.fixture
def embedder(trigrams: Callable[[], Any]) -> Any:
    return trigrams()


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([c for c in CASES if c["kind"] == "comment"]), st.sampled_from(RELATIONS))
def test_what_the_model_is_unsure_of_closes_nothing(
    tmp_path_factory: pytest.TempPathFactory, trigrams: Callable[[], Any], case: Any, relation: str
) -> None:
    """In doubt the new text stands beside the fact, whatever the two say, in both languages."""
    model = Answering(relation, sure=0.24)
    with opened(tmp_path_factory.mktemp("m"), trigrams(), model) as memory:
        fact, comment = (
            step["messages"] if isinstance(step, dict) and "messages" in step else step
            for step in case["steps"][:2]
        )
        memory.add(fact, user_id="u")
        before = texts(memory)
        memory.add(comment, user_id="u")
        assert set(before) <= set(texts(memory))


def test_how_sure_it_must_be_is_the_models(
    tmp_path: Path, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same answers, with other thresholds of the model: doubted, closed, and not even kept."""

    def told(name: str, **numbers: float) -> list[str]:
        monkeypatch.setattr(Answering.about, "thresholds", Thresholds(**numbers))
        with opened(tmp_path / name, embedder, Answering("replace", sure=0.7)) as memory:
            memory.add("I live in Boston.", user_id="u")
            memory.add("I found a flat in Rome.", user_id="u")
            return texts(memory)

    assert any("perhaps no longer" in text for text in told("doubted", close_above=0.9))
    assert any(
        "formerly" in text for text in told("closed", close_above=0.7, crowded_doubt_above=0.6)
    )
    assert told("dropped", keep_above=0.95) == []


@pytest.mark.parametrize("relation", CLOSING)
def test_what_others_say_closes_nothing(tmp_path: Path, embedder: Any, relation: str) -> None:
    with opened(tmp_path, embedder, Answering(relation)) as memory:
        memory.add("I live in Boston.", user_id="u")
        for role in ("assistant", "tool", "system", "developer", "function"):
            memory.add([{"role": role, "content": "The user lives in Rome."}], user_id="u")
        assert "User lives in Boston." in texts(memory)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "content": "I live in Bergen."},
        {"role": "system", "content": "The user lives in Bergen."},
        {"role": "developer", "content": "The user lives in Bergen."},
        {
            "role": "user",
            "content": "translate this: 'I have been living in Bergen for nine years'",
        },
        {"role": "user", "content": 'summarise: "My name is Per and I live in Bergen, Norway."'},
        {"role": "user", "content": "```\nprint('I live in Bergen')\n```"},
        {"role": "user", "content": "From: Per\nSubject: move\nI live in Bergen now."},
        {"role": "user", "content": "> I live in Bergen.\n> And I am a nurse."},
        {"role": "user", "content": "把这句话翻译成英文：我住在Bergen，是一名护士。"},
    ],
)
def test_other_peoples_words_are_no_facts(tmp_path: Path, embedder: Any, message: Any) -> None:
    """Though the model holds everything for a fact."""
    with opened(tmp_path, embedder, Answering()) as memory:
        memory.add([message], user_id="u")
        assert "Bergen" not in " ".join(texts(memory))


def test_what_the_assistant_says_is_kept_as_its_words(tmp_path: Path, embedder: Any) -> None:
    with opened(tmp_path, embedder, Answering()) as memory:
        said = "I've booked a table at Sole for 8 pm."
        memory.add([{"role": "assistant", "content": said}], user_id="u")
        [item] = texts(memory)
        assert item.startswith("The assistant said:") and "Sole" in item


@pytest.mark.parametrize(
    ("request_", "item", "named"),
    [
        ("can you lose the address?", "User lives at 5 Harbour Row.", True),
        ("can you lose the address?", "User has a cat.", False),
        ("wipe my address. brian can stay", "User's tortoise is called Brian.", False),
        ("自閉那點不必記錄,氣喘要留。", "用户说：兼有氣喘。", False),
        ("脂肪肝别留着记录", "用户体检查出脂肪肝。", True),
    ],
)
def test_a_request_names_an_item_by_its_words_or_its_property(
    request_: str, item: str, named: bool
) -> None:
    assert (named_in(request_, item) > 0) == named


def test_forget_that_acts_on_the_message_before(tmp_path: Path, embedder: Any) -> None:
    model = Answering()
    with opened(tmp_path, embedder, model) as memory:
        memory.add("I like tea.", user_id="u")
        memory.add("I am in love with Freya.", user_id="u")
        model.worth_ = "forget"
        memory.add("Forget that.", user_id="u")
        assert texts(memory) == ["User likes tea."]
        assert "Freya" not in memory.context("Freya love", user_id="u").text


@pytest.mark.parametrize(
    "text",
    [
        "Delete everything you know about me.",
        "please forget all you have stored about me",
        "把关于我的记忆全部删掉",
    ],
)
def test_forgetting_everything_must_be_confirmed(tmp_path: Path, embedder: Any, text: str) -> None:
    with opened(tmp_path, embedder, Answering()) as memory:
        memory.add("I like tea.", user_id="u")
        result = memory.add(text, user_id="u")
        assert result["results"] == [] and texts(memory) == ["User likes tea."]
        [pending] = result["pending"]
        assert pending["action"] == "delete_all" and pending["user_id"] == "u"
        assert memory.delete_all(user_id=pending["user_id"])["deleted"] == 1


@pytest.mark.parametrize("relation", ["replace", "correct", "end", "retract"])
def test_what_was_said_before_a_change_is_in_no_prompt(
    tmp_path: Path, embedder: Any, relation: str
) -> None:
    model = Answering()
    with opened(tmp_path, embedder, model) as memory:
        memory.add("My locker is number 4711.", user_id="u")
        model.relation = relation
        memory.add("Scratch that, it's 5822.", user_id="u")
        shown = memory.context("locker number", user_id="u", turns=10).text
        found = memory.search("locker number", user_id="u", turns=10)
        assert "4711" not in shown and "4711" not in json.dumps(found)


def test_an_application_that_rewrites_an_item_hides_what_was_said(
    tmp_path: Path, embedder: Any
) -> None:
    with opened(tmp_path, embedder, Answering()) as memory:
        [result] = memory.add("My locker is number 4711.", user_id="u")["results"]
        memory.update(result["id"], "User has a locker.")
        assert "4711" not in memory.context("locker number", user_id="u").text


def test_a_request_is_compared_with_more_items_than_other_messages(
    tmp_path: Path, embedder: Any
) -> None:
    looked_at: list[int] = []

    class Counting(Answering):
        def relate(
            self, message: str, before: Any, items: Sequence[str], role: str = "user"
        ) -> Any:
            looked_at.append(len(items))
            return super().relate(message, before, items, role)

    model = Counting()
    with opened(tmp_path, embedder, model) as memory:
        for number in range(20):
            memory.add(f"I keep a goat called Gaston {number}.", user_id="u")
        assert max(looked_at) <= 8
        model.worth_ = "forget"
        memory.add("Please do not keep my salary.", user_id="u")
        assert looked_at[-1] == 20


def test_a_comment_leaves_the_parts_it_does_not_mean(tmp_path: Path, embedder: Any) -> None:
    model = Answering()
    with opened(tmp_path, embedder, model) as memory:
        memory.add("I weigh 94kg and I train for a triathlon.", user_id="u")
        model.worth_, model.relation = "forget", "retract"
        memory.add("Please wipe the weight.", user_id="u")
        [item] = texts(memory)
        assert "94" not in item and "triathlon" in item


@pytest.mark.parametrize(
    ("old", "message", "new"),
    [
        ("User's rent is 540.", "wait 580", "User's rent is 580."),
        ("User's son is called Mathias.", "*Matthias", "User's son is called Matthias."),
        ("User's interview is on Monday.", "no wait, Tuesday", "User's interview is on Tuesday."),
        ("用户的生日是7月19日。", "口误,是7月17日", "用户的生日是7月17日。"),
        ("User's flight is at 6.20.", "nope 7.20, 6.20 is the taxi", "User's flight is at 7.20."),
        ("User moved from 12 Elm Road to 14 Oak Road.", "it's 15", None),
        ("User has a cat.", "lovely weather today", None),
        ("User's family is from Thurso.", "Wick. always mix it up", "User's family is from Wick."),
        ("User has four goats.", "five goats, the small one hides", "User has five goats."),
        ("User's number is 0851 442 907.", "*0851 424 907 sorry", "User's number is 0851 424 907."),
        ("用户种了苦瓜。", "苦瓜说错了", None),
        ("用户的公司有二十来号人。", "咋可能,二百来号", None),
    ],
)
def test_a_corrected_value_takes_the_place_of_the_wrong_one(
    old: str, message: str, new: str | None
) -> None:
    assert corrected(old, message) == new


@given(st.text(max_size=200))
def test_the_stretches_of_others_lie_in_the_text(text: str) -> None:
    found = foreign(text)
    assert found == sorted(found)
    assert all(0 <= start <= end <= len(text) for start, end in found)
    assert not found or not OwnWords(found).has(*found[0])


PLACES = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda two: tuple(sorted(two)))


@given(st.lists(PLACES, max_size=8), PLACES)
def test_own_words_are_those_of_which_most_is_nobody_elses(
    others: list[tuple[int, int]], asked: tuple[int, int]
) -> None:
    begin, end = asked
    shared = sum(max(0, min(end, stop) - max(begin, start)) for start, stop in others)
    assert OwnWords(sorted(others)).has(begin, end) is (shared * 2 < end - begin)


@pytest.mark.parametrize("part", ["A. ", "e.g. ", "{x}\n", "> a\n"])
def test_a_long_message_is_read_part_by_part(part: str) -> None:
    # Where each part is compared with all the others, or with all of the text, this takes hours.
    text = part * (300_000 // len(part))
    own = OwnWords(foreign(text))
    sentences = split_sentences(text)
    assert len([own.has(place, place + 1) for place in range(len(sentences))]) == len(sentences)
    assert "".join("".join(sentences).split()) == "".join(text.split())


def test_a_row_of_points_that_ends_no_sentence_is_looked_at_once() -> None:
    text = "." * 2_000_000 + "x"
    assert split_sentences(text) == [text]


def closing(sure: float) -> float:
    """What the stand-in must say of one closing relation so that all four have `sure` together."""
    return (sure - 3 / 8) * 8 / 5


@pytest.mark.parametrize(("sure", "doubted"), [(0.55, 0), (0.7, 0), (0.77, 1)])
def test_one_item_at_most_is_doubted_and_among_many_a_surer_one(
    tmp_path: Path, embedder: Any, sure: float, doubted: int
) -> None:
    model = Answering()
    told = ["I have a cat", "I play chess", "I like tea", "I live in Boston", "I drive a Golf"]
    with opened(tmp_path, embedder, model) as memory:
        memory.add(" ".join(f"{text}." for text in told), user_id="u")
        before = texts(memory)
        assert len(before) == len(told)
        model.relation, model.sure = "replace", closing(sure)
        memory.add("It rained on the way home", user_id="u")
        assert sum("perhaps no longer" in text for text in texts(memory)) == doubted
        if not doubted:
            assert set(before) <= set(texts(memory))


def test_beside_few_items_less_certainty_is_a_doubt(tmp_path: Path, embedder: Any) -> None:
    model = Answering()
    with opened(tmp_path, embedder, model) as memory:
        memory.add("I have a cat.", user_id="u")
        model.relation, model.sure = "replace", closing(0.5)
        memory.add("It rained on the way home", user_id="u")
        assert any("perhaps no longer" in text for text in texts(memory))


def test_what_an_assistant_said_is_changed_only_where_it_is_named(
    tmp_path: Path, embedder: Any
) -> None:
    model = Answering()
    with opened(tmp_path, embedder, model) as memory:
        told = {"role": "assistant", "content": "I booked you a table at Sora for Friday."}
        memory.add([told], user_id="u")
        before = texts(memory)
        assert before and before[0].startswith("The assistant said")
        model.relation, model.sure = "replace", closing(0.6)
        memory.add("It rained on the way home", user_id="u")
        assert before[0] in texts(memory)
        model.sure = closing(0.9)
        memory.add("I will eat at home now", user_id="u")
        assert before[0] in texts(memory)
        memory.add("I cancelled the table at Sora", user_id="u")
        assert before[0] not in texts(memory)


@pytest.mark.parametrize(
    ("message", "item", "other"),
    [
        ("李婷婷是用户的表妹，其家乡是北京。", "张伟是用户的表弟，其家乡是北京。", True),
        ("Tom works at Google", "User's sister Anna works at Meta", True),
        ("Anna lives in Rome now", "User's sister Anna lives in Oslo", False),
        ("Anna Smith lives in Rome", "Anna lives in Oslo", False),
        ("User's phone is a Pixel", "User's phone is a Nokia", False),
        ("User lives in Rome", "Anna lives in Rome", False),
    ],
)
def test_people_by_name_are_told_apart(message: str, item: str, other: bool) -> None:
    assert of_other_person(message, item) is other


def test_what_is_said_of_one_person_changes_nothing_of_another(
    tmp_path: Path, embedder: Any
) -> None:
    model = Answering()
    with opened(tmp_path, embedder, model) as memory:
        memory.add("张伟是我的表弟，其家乡是北京。", user_id="u")
        before = texts(memory)
        model.relation, model.sure = "replace", closing(0.9)
        memory.add("李婷婷是我的表妹，其家乡是北京。", user_id="u")
        assert before[0] in texts(memory)
        memory.add("张伟的家乡是上海。", user_id="u")
        assert before[0] not in texts(memory)
