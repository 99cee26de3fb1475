"""The gate: which messages close nothing, so that no item is read with them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.memory.test_relation_model import BEFORE, MESSAGE, small_weights

from memograd.errors import BadInput
from memograd.memory.manager import RelationManager
from memograd.memory.reader import TrainedReader
from memograd.memory.reader.fact import Fact, Heard
from memograd.memory.records.items import MemoryItem
from memograd.memory.records.scope import Scope
from memograd.memory.records.turns import RawTurn
from memograd.memory.relations import (
    CLOSING,
    RELATIONS,
    RelationModel,
    Thresholds,
    load_relation_model,
)
from memograd.memory.relations.encoder import Encoder
from memograd.memory.relations.gate import (
    WORTH_SEEN,
    Gate,
    Linear,
    digest,
    gate_file,
    read_gate,
    write_gate,
)
from memograd.memory.relations.weights import Weights, write_weights
from memograd.tasks.relations.gate import fitted, fitted_secrets, judged, judged_secrets, seen, told
from memograd.tasks.relations.rows import read_dialogues

NOW = datetime(2024, 5, 7, tzinfo=UTC)
SENTENCES = ["guess who's a Montrealer now!", "周六搬的家。"]


@pytest.fixture(scope="module")
def weights() -> Weights:
    return small_weights()


def gate_of(weights: Weights, least: float, seed: int = 0) -> Gate:
    weight = np.random.default_rng(seed).normal(size=weights.hidden).astype(np.float32)
    return Gate(Linear(weight, 0.25, least), digest(weights))


def keeping(gate: Gate, least: float) -> Gate:
    """The gate with a second function, by chance."""
    weight = np.random.default_rng(1).normal(size=2 * len(gate.closes.weight)).astype(np.float32)
    return replace(gate, keeps=Linear(weight, 0.1, least))


def test_a_model_without_a_gate_reads_every_item(weights: Weights) -> None:
    assert RelationModel(weights).may_close(MESSAGE, BEFORE, SENTENCES)


def test_the_bound_decides_and_any_part_of_a_long_message_opens(weights: Weights) -> None:
    long = "I bought bread and milk and eggs. " * 14 + "I moved to Montreal. " * 12
    for message in (MESSAGE, long):
        vectors = RelationModel(weights).message_vectors(message, BEFORE)
        gate = gate_of(weights, 0.0)
        highest = float(gate.closes.scores(vectors).max())
        for least, expected in ((highest - 0.01, True), (highest + 0.01, False)):
            model = RelationModel(weights, gate_of(weights, least))
            assert model.may_close(message, BEFORE, []) is expected
    assert len(vectors) > 1


def test_it_reads_the_rows_that_worth_has_read(
    weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[tuple[int, ...]] = []
    compute = Encoder._run

    def counted(self: Encoder, number: int, tokens: Any, parts: Any) -> np.ndarray:
        if number == len(self._sessions) - 1:  # to the end
            rows.append(tokens)
        return compute(self, number, tokens, parts)

    monkeypatch.setattr(Encoder, "_run", counted)
    model = RelationModel(weights, gate_of(weights, 1e9))
    long = "".join(f"In year {n} I lived in town {n}. " for n in range(40))
    for message, sentences in ((MESSAGE, SENTENCES), (long, long.strip().split(". "))):
        model.worth(message, BEFORE, sentences)
        told = len(rows)
        assert not model.may_close(message, BEFORE, sentences)
        assert len(rows) == told


@pytest.mark.parametrize("role", ["assistant", "user"])
def test_rows_of_an_assistant_in_which_nothing_is_to_be_kept_are_not_read_to_the_end(
    weights: Weights, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    rows: list[tuple[int, ...]] = []
    compute = Encoder._run

    def counted(self: Encoder, number: int, tokens: Any, parts: Any) -> np.ndarray:
        if number == len(self._sessions) - 1:  # to the end
            rows.append(tokens)
        return compute(self, number, tokens, parts)

    monkeypatch.setattr(Encoder, "_run", counted)
    sentences = [f"In year {n} I lived in town {n}." for n in range(40)]
    long = " ".join(sentences)
    plain = RelationModel(weights)
    whole = plain.worth(long, BEFORE, sentences, role=role)
    read = len(rows)
    assert read > 2
    order, vectors = plain.early_vectors(long, BEFORE, sentences)
    assert order == list(range(40)) and vectors.shape == (40, 2 * weights.hidden)
    gate = keeping(gate_of(weights, 0.0), 0.0)
    assert gate.keeps is not None
    scores = gate.keeps.scores(vectors)
    rows.clear()
    bound = float(np.sort(scores)[-1])  # the best sentence alone reaches it
    model = RelationModel(weights, keeping(gate, bound - 1e-4))
    found = model.worth(long, BEFORE, sentences, role=role)
    if role == "user":
        assert np.array_equal(found, whole) and len(rows) == read
        return
    assert len(rows) == 1
    best = int(scores.argmax())
    assert np.array_equal(found[best], whole[best])
    left_out = [row for row in found.tolist() if row == [0.0, 1.0, 0.0]]
    assert 20 <= len(left_out) < 40


def test_what_is_written_is_read_and_belongs_to_its_weights(
    weights: Weights, tmp_path: Path
) -> None:
    file = tmp_path / "mine.npz"
    write_weights(weights, file)
    assert read_gate(gate_file(file), weights) is None
    gate = gate_of(weights, -2.0)
    secret = replace(gate, secrets=keeping(gate, 0.5).keeps)
    wide = np.arange(2 * weights.hidden + WORTH_SEEN, dtype=np.float32)
    worth = replace(gate, worth=Linear(wide, 0.5, 0.0))
    for one in (keeping(gate, 1.5), gate, secret, keeping(secret, 1.5), worth):
        write_gate(one, gate_file(file))
        found = read_gate(gate_file(file), weights)
        assert found is not None and found.of == gate.of
        for ours, read in (
            (one.closes, found.closes),
            (one.keeps, found.keeps),
            (one.secrets, found.secrets),
            (one.worth, found.worth),
        ):
            assert (ours is None) == (read is None)
            if ours is not None and read is not None:
                assert np.array_equal(read.weight, ours.weight)
                assert (read.bias, read.least) == (pytest.approx(ours.bias), ours.least)
    model = load_relation_model(file)
    asked = RelationModel(weights, gate).may_close(MESSAGE, BEFORE, SENTENCES)
    assert model.may_close(MESSAGE, BEFORE, SENTENCES) is asked
    warmer = replace(weights, about=replace(weights.about, relation_temperature=2.0))
    assert read_gate(gate_file(file), warmer) is not None
    whole, scales = weights.matrices["layers.0.query"]
    others = {**weights.matrices, "layers.0.query": (-whole, scales)}
    with pytest.raises(BadInput, match="other weights"):
        read_gate(gate_file(file), replace(weights, matrices=others))


@pytest.mark.parametrize("spoilt", ["", "PK", "nan", "shape", "keeps", "secrets", "worth"])
def test_a_spoilt_gate_is_one_sentence(weights: Weights, tmp_path: Path, spoilt: str) -> None:
    file = tmp_path / "x.gate.npz"
    gate = gate_of(weights, 0.0)
    if spoilt == "nan":
        write_gate(replace(gate, closes=replace(gate.closes, bias=float("nan"))), file)
    elif spoilt == "shape":
        short = replace(gate.closes, weight=gate.closes.weight[:5])
        write_gate(replace(gate, closes=short), file)
    elif spoilt == "keeps":
        write_gate(replace(gate, keeps=gate.closes), file)
    elif spoilt == "secrets":
        write_gate(replace(gate, secrets=gate.closes), file)
    elif spoilt == "worth":
        write_gate(replace(gate, worth=gate.closes), file)
    else:
        file.write_text(spoilt)
    with pytest.raises(BadInput, match="is not the gate of the relation model"):
        read_gate(file, weights)


def test_the_gate_that_ships_knows_changes_from_questions() -> None:
    model = load_relation_model()
    for message in (
        "I sold my car yesterday.",
        "guess who's a Montrealer now!",
        "我上周搬到杭州了",
    ):
        assert model.may_close(message, [], [message]), message
    for message in ("Can you recommend some good books about Rome?", "帮我推荐几本关于罗马的书"):
        assert not model.may_close(message, [], [message]), message


def test_secrets_are_told_by_the_rows_that_worth_has_read(
    weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[tuple[int, ...]] = []
    compute = Encoder._run

    def counted(self: Encoder, number: int, tokens: Any, parts: Any) -> np.ndarray:
        if number == len(self._sessions) - 1:  # to the end
            rows.append(tokens)
        return compute(self, number, tokens, parts)

    monkeypatch.setattr(Encoder, "_run", counted)
    sentences = [f"In year {n} I lived in town {n}." for n in range(40)]
    long = " ".join(sentences)
    plain = RelationModel(weights)
    assert not plain.holds_secret(long, BEFORE, sentences).any()
    gate = keeping(gate_of(weights, 0.0), 0.0)
    assert gate.keeps is not None
    order, vectors = plain.late_vectors(long, BEFORE, sentences)
    scores = gate.keeps.scores(vectors)
    bound = float(np.sort(scores)[-3]) - 1e-4
    model = RelationModel(weights, replace(gate, secrets=replace(gate.keeps, least=bound)))
    rows.clear()
    worth = model.worth(long, BEFORE, sentences)
    read = len(rows)
    assert read > 1
    found = model.holds_secret(long, BEFORE, sentences)
    assert len(rows) == read
    assert set(np.flatnonzero(found)) == {order[n] for n in scores.argsort()[-3:]}
    assert not model.holds_secret(long, BEFORE, ["What it does not say."]).any()
    assert np.array_equal(worth, plain.worth(long, BEFORE, sentences))


@pytest.mark.parametrize(
    ("message", "secret"),
    [
        (
            "I clean for Mrs Danvers-Pugh on Wednesdays, the alarm there is 5590 then hash, and"
            " I've to be out by noon.",
            "5590",
        ),
        (
            "I run a B&B in Tenby with five rooms. The wifi for guests is puffin-kettle-88, make me"
            " a little sign for the hall with that on.",
            "puffin",
        ),
        ("我妈手机锁屏是她生日倒过来，911730，她老忘，我替她记着。", "911730"),
    ],
)
def test_the_gate_that_ships_finds_secrets_told_in_passing(message: str, secret: str) -> None:
    turn = RawTurn("t", "user", message, NOW, 0)
    heard = TrainedReader(load_relation_model()).hear([turn], [])[0]
    assert heard.secret
    assert secret not in " ".join([heard.whole, heard.stated, *(one.text for one in heard.facts)])


@pytest.mark.parametrize(
    "message",
    [
        "I took the bus at 0730 and paid 4500 pesos.",
        "My locker is number 12.",
        "我家门牌号是1602。",
    ],
)
def test_the_gate_that_ships_leaves_numbers_alone(message: str) -> None:
    turn = RawTurn("t", "user", message, NOW, 0)
    assert not TrainedReader(load_relation_model()).hear([turn], [])[0].secret


def test_secrets_are_learnt_of_dialogues_about_them(weights: Weights, tmp_path: Path) -> None:
    """What is no fact there is one; facts, also beside a secret, are none."""
    places = ["attic", "shed", "barn", "porch", "cellar", "garage"]
    for author in ("v", "w", "x"):
        cases = [
            {"k": kind, "t": [["u", text, [["f", quote, quote]] if quote else []]]}
            for n, place in enumerate(places)
            for kind, text, quote in (
                ("secret", f"My key is behind the {place}. I am {20 + n}.", f"I am {20 + n}."),
                ("change", f"I lost a key in the {place}.", f"I lost a key in the {place}."),
            )
        ]
        (tmp_path / f"en-{author}.jsonl").write_text("\n".join(map(json.dumps, cases)))
    model = RelationModel(weights)
    turns = {one: read_dialogues(tmp_path / f"en-{one}.jsonl") for one in ("v", "w", "x")}
    learnt = told(model, turns["v"] + turns["w"])
    assert learnt.secret.sum() == 12 == learnt.fact.sum()
    assert learnt.facts == {"v": 12, "w": 12}
    bounding = told(model, turns["x"])
    secrets = fitted_secrets(learnt, bounding)
    assert secrets is not None
    found = judged_secrets(secrets, bounding)
    assert (found.secrets, found.by_both, found.facts, found.lost) == (6, 6, 12, 0)
    assert found.by_rules == 0
    assert fitted_secrets(learnt.of(["z"]), bounding) is None
    assert fitted_secrets(learnt, bounding.of(["z"])) is None


class Counting:
    """Stands in for a relation model to which all is unrelated; counts what it reads."""

    def __init__(self) -> None:
        self.read = 0

    points = False
    crowded = None
    reads_twice = False
    requests = None
    few = None

    def other_value(self, message: str, before: Any, item: str) -> None:
        return None

    def relate(self, message: str, before: Any, items: Any, role: str = "user") -> np.ndarray:
        self.read += 1
        found = np.zeros((len(items), len(RELATIONS)), np.float32)
        found[:, 0] = 1.0
        return found


def item(text: str) -> MemoryItem:
    return MemoryItem(text, text, Scope("u"), NOW, NOW)


def heard(text: str, *facts: str, **more: Any) -> Heard:
    turn = RawTurn("t", "user", text, NOW, 0)
    told = tuple(Fact(fact, ("t",), told_at=NOW) for fact in facts)
    return Heard(turn, facts=told, quotes=facts, own=text, whole=text, **more)


REMEMBERED = [item("User lives in Ottawa."), item("User has a cat."), item("用户养了一只猫。")]
LAPS = [item("User did four laps round the park.")]


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I went to a jazz concert on Friday.", ["User went to a jazz concert on Friday."]),
        ("Can you plan a trip to Rome?", []),
        ("周末我去爬山了", ["用户周末去爬山了。"]),
        ("I play chess and I like tea.", ["User plays chess.", "User likes tea."]),
    ],
)
def test_what_closes_nothing_is_decided_as_if_all_were_unrelated(
    said: str, facts: list[str]
) -> None:
    model = Counting()
    manager = RelationManager(model, thresholds=Thresholds())  # type: ignore[arg-type]
    message = heard(said, *facts)
    full = manager.decide_heard(message, REMEMBERED, frozenset())
    assert model.read == 1
    assert not manager.only_adds(message, REMEMBERED)
    message = replace(message, may_close=False)
    assert manager.decide_heard(message, REMEMBERED, frozenset()) == full
    assert manager.only_adds(message, REMEMBERED)
    assert manager.decide_heard(message, (), frozenset()) == full
    assert model.read == 1


@pytest.mark.parametrize(
    ("said", "facts", "more"),
    [
        ("Forget where I live.", [], {"forget": True}),
        ("No, I meant Toronto.", ["User meant Toronto."], {}),  # it sounds like a correction
        ("I live in Boston.", ["User lives in Boston."], {}),  # rules see a change
        ("I have a cat", ["User has a cat"], {}),  # the very same
        ("A cat!", ["User: cat."], {}),  # every word of it stands in an item
    ],
)
def test_what_may_touch_an_item_by_its_words_is_read(
    said: str, facts: list[str], more: dict[str, bool]
) -> None:
    model = Counting()
    manager = RelationManager(model, thresholds=Thresholds())  # type: ignore[arg-type]
    message = heard(said, *facts, may_close=False, **more)
    manager.decide_heard(message, REMEMBERED, frozenset())
    assert model.read >= 1
    assert not manager.only_adds(message, REMEMBERED)


@pytest.mark.parametrize(
    ("message", "among"),
    [
        (heard("I did six laps round the park", "User did six laps round the park."), LAPS),
        (heard("Where is my cat?", asked=(Fact("User has a cat.", ("t",)),)), REMEMBERED),
        (heard("A cat and a dog", perhaps=("A cat and a dog",)), REMEMBERED),
        (heard("Forget it all", everything=True), REMEMBERED),
    ],
)
def test_what_may_do_more_than_add_is_compared_with_what_is_near(
    message: Heard, among: list[MemoryItem]
) -> None:
    manager = RelationManager(Counting(), thresholds=Thresholds())  # type: ignore[arg-type]
    assert not manager.only_adds(replace(message, may_close=False), among)


def test_it_is_fitted_to_what_the_model_says(weights: Weights, tmp_path: Path) -> None:
    cases = [
        {
            "k": "change",
            "t": [
                ["u", f"I live in town {n}", [["f", f"I live in town {n}", f"Lives in {n}."]]],
                ["u", f"I moved to village {n}", [], [["f", "replace"]]],
            ],
        }
        for n in range(6)
    ]
    file = tmp_path / "en-x.jsonl"
    file.write_text("\n".join(json.dumps(case) for case in cases))
    turns = read_dialogues(file)
    # These heads are of chance: a bias on the last closing relation makes them close every item.
    bias = weights.vectors["relations.outer.bias"].copy()
    bias[-1] = 3.0
    closing = replace(weights, vectors={**weights.vectors, "relations.outer.bias": bias})
    gate = fitted(closing, turns, turns)
    found = judged(gate, seen(RelationModel(closing), turns), closing.about.thresholds.link_above)
    assert (found.turns, found.closes) == (6, 6) and found.missed <= 1
    assert gate.of == digest(weights)
    bias[[RELATIONS.index(name) for name in CLOSING]] = -30.0
    with pytest.raises(BadInput, match="closes nothing"):
        fitted(closing, turns, turns)
    with pytest.raises(BadInput, match="No turn of a user"):
        fitted(closing, [said for said in turns if not said.items], turns)
