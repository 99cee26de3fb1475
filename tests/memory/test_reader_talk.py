"""What two people tell each other: the facts among their reactions, worded for a stranger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memograd.memory import Memory
from memograd.memory.reader.about import spoken_of
from memograd.memory.reader.heads import leans
from memograd.memory.reader.parts import question_before
from memograd.memory.reader.setting import Setting
from memograd.memory.reader.talk import keeps_talk_going, may_tell, told_in
from memograd.memory.reader.wording import say
from memograd.memory.records.turns import RawTurn
from memograd.memory.relations.model import SHIPPED

needs_model = pytest.mark.skipif(
    not SHIPPED.is_file(), reason="the relation model's weights are not in this copy"
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory.open(
        tmp_path_factory.mktemp("talk"), reader="trained", manager="trained", env_file=None
    ) as opened:
        yield opened


def told(memory: Memory, user: str, *said: str) -> list[str]:
    """What Iris and Jon said in turns leaves in the memory."""
    names = ("Iris", "Jon")
    messages = [
        {"role": "user", "name": names[n % 2], "content": text} for n, text in enumerate(said)
    ]
    memory.add(messages, user_id=user, timestamp="2024-03-24T10:00:00")
    return [one["memory"] for one in memory.get_all(user_id=user)["results"]]


@needs_model
def test_a_fact_among_reactions_is_kept(memory: Memory) -> None:
    found = told(
        memory,
        "reactions",
        "We're both shattered, the twins were up all night.",
        "Oh no, Iris! Hang in there. Yesterday I took my nieces to the aquarium - it was so cool!",
    )
    assert "On 23 March 2024, Jon took their nieces to the aquarium - it was so cool!" in found
    assert not any("Hang in there" in one for one in found)


@needs_model
def test_what_points_back_stands_with_what_it_points_at(memory: Memory) -> None:
    found = told(
        memory,
        "points",
        "I finally finished my first quilt. It's all wool and it took me two years.",
        "My boat is in the shed. They want her out by June.",
    )
    assert (
        "Iris finally finished their first quilt. It's all wool and it took Iris two years."
        in found
    )


@needs_model
def test_somebody_who_is_clearly_meant_is_named_instead(memory: Memory) -> None:
    memory.add("My gran left me a clock. She got it from a sailor in Hull.", user_id="named")
    found = [one["memory"] for one in memory.get_all(user_id="named")["results"]]
    assert found[1:] == ["About User's gran: she got it from a sailor in Hull."]


@needs_model
def test_an_answer_without_a_subject_is_about_whom_was_asked_for(memory: Memory) -> None:
    found = told(
        memory,
        "asked",
        "I heard about the accident. And how is your brother doing these days?",
        "Broke his collarbone on the ski slope and he cannot drive for six weeks now.",
    )
    assert any("Broke his collarbone" in one for one in found)
    assert not any("Jon broke" in one for one in found)


@pytest.mark.parametrize(
    ("said", "item"),
    [
        ("Been a strange old month for me.", "Been a strange old month for Ada."),
        ("Been a vegetarian for years.", "Ada has been a vegetarian for years."),
        ("So many swans came to the lock.", "Ada said: So many swans came to the lock."),
        ("I think you two met my aunt.", "Ada thinks Jon two met their aunt."),
        ("Don't forget to tell my aunt.", "Don't forget to tell Ada's aunt."),
        ("Don't forget that my aunt paints.", "Ada's aunt paints."),
    ],
)
def test_how_a_sentence_is_worded(said: str, item: str) -> None:
    turn = RawTurn("a", "Ada", said, None, 1, role="user")
    setting = Setting(turn, ("Ada", "Jon"), False, None, "", alone=False)
    assert say(said, setting).text == item


@pytest.mark.parametrize(
    ("said", "called", "answers", "goes_on"),
    [
        ("Whose idea was it?", False, False, True),
        ("bring him wellies", False, False, True),
        ("in May", False, False, False),
        ("22 without", False, False, False),
        ("January!", False, False, True),
        ("go to the tailor in Hull, ask for Rita", False, False, False),
        ("family is the best!", True, False, True),
        ("Sure thing!", True, False, True),
        ("Petrel", False, True, False),
        ("the bow's a good one", False, False, False),
        ("Did you see my car?", False, False, False),
        ("Mum sold the house", False, False, False),
        ("带他来！", False, False, False),
    ],
)
def test_what_only_keeps_the_talk_going(
    said: str, called: bool, answers: bool, goes_on: bool
) -> None:
    assert keeps_talk_going(said, called=called, answers=answers) is goes_on


def test_what_may_tell_something() -> None:
    assert may_tell("We went biking on Sunday", 0.3)
    assert not may_tell("We went biking on Sunday", 0.1)
    assert not may_tell("Your painting is gorgeous", 0.3)
    assert told_in("I took them swimming - it was great") == "I took them swimming"
    assert told_in("I took them swimming - in the Wye") == "I took them swimming - in the Wye"


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("It still ticks", True),
        ("And they're all wool", True),
        ("This week I swim", False),
        ("That dog bit me", True),
        ("Is it yours?", False),
        ("Iris sings", False),
    ],
)
def test_what_points_back(text: str, back: bool) -> None:
    assert leans(text) is back


@pytest.mark.parametrize(
    ("asked", "answer", "question"),
    [
        ("Wow, that looks great! Is it yours?", "Yes, it is", "Is it yours?"),
        ("You're doomed. have you named it", "Petrel", "have you named it"),
        ("What are they called? They look sweet", "Toffee and Bean!", "What are they called?"),
        ("What are they called? They look sweet", "They keep me busy.", None),
        ("How was it? I slept all day.", "Great!", None),
        ("Did the swim without my suit.", "Brave", None),
    ],
)
def test_the_question_that_a_person_asked(asked: str, answer: str, question: str | None) -> None:
    before = RawTurn("a", "Iris", asked, None, 1, role="user")
    assert question_before([before], RawTurn("b", "Jon", answer, None, 2, role="user")) == question


@pytest.mark.parametrize(
    ("own", "other", "known"),
    [
        ("I moved.", "How's Leyla getting on?", "I moved.\nHow's Leyla getting on?"),
        ("I moved.", "My sister sends her love", "I moved."),  # whose she is, is not known
        ("I moved.", "Irie, has Perran called?", "I moved.\nhas Perran called?"),
        ("I moved.", "", "I moved."),
        ("我搬了。", "丽丽好吗？", "我搬了。"),
    ],
)
def test_of_whom_a_pronoun_may_speak(own: str, other: str, known: str) -> None:
    assert spoken_of(own, other, ("Iris", "Jon")) == known


@needs_model
def test_whom_the_other_has_just_named_is_meant(memory: Memory) -> None:
    found = told(memory, "named by other", "Perran called again!", "He builds boats in Falmouth.")
    assert "About Perran: he builds boats in Falmouth." in found


@needs_model
@pytest.mark.parametrize(
    ("said", "items"),
    [
        ("Wow, Iris, a family's support and love is the best!", []),
        ("come up in the autumn. I can hide Fergus in the shed", ["Jon can hide Fergus"]),
        ("The brown one? She looks well on it", []),
    ],
)
def test_cheers_and_questions_of_people_are_no_items(
    memory: Memory, said: str, items: list[str]
) -> None:
    found = told(memory, said, "The twins saw the otter.", said)
    jons = [one for one in found if one.startswith("Jon")]
    assert len(jons) == len(items)
    assert all(one.startswith(start) for one, start in zip(jons, items, strict=True))
