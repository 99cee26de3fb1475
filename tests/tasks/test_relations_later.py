"""GRPO on later questions for the relation model: what a decision is worth, how it is drawn, and a
run from end to end."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from memograd.errors import BadInput
from memograd.grpo.advantage import group_advantages
from memograd.memory.embedders.e5_weights import E5Weights, read_e5
from memograd.memory.relations.rows import RowBuilder
from memograd.memory.relations.thresholds import Thresholds
from memograd.memory.relations.weights import RELATIONS, WORTHS, About, read_weights, write_weights
from memograd.tasks.registry import train
from memograd.tasks.relations.decisions import (
    CLOSE,
    DOUBT,
    LEAVE,
    DecisionDistributions,
    State,
    carried,
    greedy,
    log_odds,
    policy_of,
    posed_as_served,
    posed_for_training,
)
from memograd.tasks.relations.later import DialogueWalk, rewards
from memograd.tasks.relations.learning import Steps
from memograd.tasks.relations.measure import answered, answers_table
from memograd.tasks.relations.network import RelationNetwork
from memograd.tasks.relations.questions import AskedDialogue, Held, read_asked, value
from memograd.tasks.relations.rows import Examples
from memograd.tasks.relations.settings import LaterConfig, RelationsConfig

MOVED = {
    "k": "change",
    "t": [
        ["u", "I live in Ottawa", [["f1", "I live in Ottawa", "User lives in Ottawa."]]],
        [
            "u",
            "haha! I moved to Montreal.",
            [["f2", "I moved to Montreal", "User lives in Montreal."]],
            [["f1", "replace"]],
        ],
    ],
    "q": [["Where does the user live?", ["f2"], "montr[eé]al"]],
}
FORGOTTEN = {
    "k": "retraction",
    "t": [
        ["u", "我对花生过敏", [["f1", "我对花生过敏", "用户对花生过敏。"]]],
        ["t", "过敏原检测已保存。", []],
        ["u", "别记这个", [], [["f1", "retract"]]],
    ],
    "q": [["用户对什么过敏?", []]],
}
SECRET = {
    "k": "secret",
    "t": [
        [
            "u",
            "The alarm code is 4711. I live in Bern.",
            [["f1", "I live in Bern", "User lives in Bern."]],
        ]
    ],
    "q": [["What is the alarm code?", []], ["Where does the user live?", ["f1"], "bern"]],
}
TWICE = {
    "k": "ending",
    "t": [
        [
            "u",
            "I have a Vespa. And a pickup.",
            [["f1", "a Vespa", "User has a Vespa."], ["f2", "a pickup", "User has a pickup."]],
        ],
        [
            "u",
            "Sold the Vespa. The truck stays.",
            [
                ["f3", "Sold the Vespa", "User no longer has the Vespa."],
                ["f4", "The truck stays", "User has a pickup."],
            ],
            [["f1", "end"], ["f2", "same"]],
        ],
    ],
    "q": [["Does the user have a pickup?", ["f2", "f4"], "pickup"]],
}
HELD, DOUBTED = Held(), Held(doubted=True)
THRESHOLDS = Thresholds()
CLOSE_ABOVE, DOUBT_ABOVE = THRESHOLDS.close_above, THRESHOLDS.doubt_above


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    return path


@pytest.fixture
def batch_file(tmp_path: Path) -> Path:
    return written(tmp_path / "en-x.jsonl", [MOVED, FORGOTTEN, SECRET, TWICE])


@pytest.fixture(scope="module")
def e5() -> E5Weights:
    return read_e5()


def worth(dialogue: AskedDialogue, turn: int, held: dict[str, Held], **more: Any) -> float:
    later = LaterConfig()
    return value(dialogue.questions(turn, later), held, later, **more)


def test_the_newest_answers_and_the_old_misleads(batch_file: Path) -> None:
    moved = read_asked(batch_file)[0]
    assert worth(moved, 0, {}) == 0 and worth(moved, 0, {"f1": HELD}) == 1
    assert worth(moved, 1, {"f2": HELD}) == 1
    assert worth(moved, 1, {"f1": HELD, "f2": HELD}) == 0.5
    assert worth(moved, 1, {"f1": DOUBTED, "f2": HELD}) == 0.875
    assert worth(moved, 1, {"f1": HELD}) == worth(moved, 1, {}) == 0
    assert worth(moved, 1, {"f2": Held(0.5)}) == 0.5


def test_what_is_taken_back_must_not_be_found(batch_file: Path) -> None:
    forgotten = read_asked(batch_file)[1]
    # Before it is taken back nobody asks for it in the dialogue, so it counts by itself.
    assert worth(forgotten, 0, {"f1": HELD}) == 0.5 and worth(forgotten, 0, {}) == 0
    assert worth(forgotten, 2, {}) == 1 and worth(forgotten, 2, {"f1": HELD}) == 0
    assert worth(forgotten, 2, {"f1": DOUBTED}) == 0.75


def test_what_holds_no_fact_misleads_who_asks_for_what_is_not_there(batch_file: Path) -> None:
    secret = read_asked(batch_file)[2]
    assert worth(secret, 0, {"f1": HELD}) == 2
    assert worth(secret, 0, {"f1": HELD}, noise=1) == 0.5
    assert worth(secret, 0, {"f1": HELD}, noise=2) == 0
    assert worth(secret, 0, {"f1": HELD}, tokens=10) == pytest.approx(1.96)


def test_one_fact_is_enough_where_it_answers_alone(batch_file: Path) -> None:
    twice = read_asked(batch_file)[3]
    # Asked for: the pickup, and by itself (for a half) f3; f1 holds no longer, which counts a half.
    assert worth(twice, 1, {"f2": HELD, "f3": HELD}) == 2
    assert worth(twice, 1, {"f4": HELD, "f3": HELD}) == 2
    assert worth(twice, 1, {"f1": HELD, "f2": HELD}) == 1
    assert worth(twice, 1, {}) == 0.5


def test_a_joint_decision_is_worth_what_it_leaves(batch_file: Path, e5: E5Weights) -> None:
    moved = read_asked(batch_file)[0]
    later = LaterConfig(token_cost=0.01)
    posed = posed_as_served(State(moved, 1, {"f1": HELD}), RowBuilder(e5), later, THRESHOLDS)
    assert len(posed.items) == 1 and list(posed.noise) == [True, False]
    words = posed.tokens[1]
    assert posed.reward([CLOSE], [0, 1], later) == pytest.approx(1 - 0.01 * words)
    assert posed.reward([DOUBT], [0, 1], later) == pytest.approx(0.875 - 0.01 * words)
    assert posed.reward([LEAVE], [0, 1], later) == pytest.approx(0.5 - 0.01 * words)
    assert posed.reward([LEAVE], [0, 0], later) == 0
    assert posed.reward([CLOSE], [1, 1], later) < posed.reward([CLOSE], [0, 1], later)
    assert carried(posed, [DOUBT], [0, 1]) == {"f1": DOUBTED, "f2": HELD}
    assert carried(posed, [CLOSE], [0, 0]) == {}


def test_of_an_item_of_two_facts_the_meant_one_is_taken_out(tmp_path: Path, e5: E5Weights) -> None:
    case = {
        "k": "ending",
        "t": [
            [
                "u",
                "我住北京,养猫",
                [["f1", "我住北京", "用户住北京。"], ["f2", "养猫", "用户养猫。"]],
            ],
            ["u", "猫送人了", [], [["f2", "end"]]],
        ],
        "q": [],
    }
    dialogue = read_asked(written(tmp_path / "zh-x.jsonl", [case]))[0]
    state = State(dialogue, 1, {"f1": HELD, "f2": HELD})
    posed = posed_as_served(state, RowBuilder(e5), LaterConfig(), THRESHOLDS)
    assert posed.items == [("f1", "f2")]
    assert set(posed.after([CLOSE], [0])) == {"f1"}


def test_closing_an_item_of_another_dialogue_costs_its_answer(
    batch_file: Path, e5: E5Weights
) -> None:
    later, builder = LaterConfig(), RowBuilder(e5)
    dialogues = read_asked(batch_file)
    examples = Examples([t for one in dialogues for t in one.turns], builder, RelationsConfig())
    for seed in range(40):
        rng = random.Random(seed)
        posed = posed_for_training(
            State(dialogues[2], 0, {}), examples, builder, 0.6, later, THRESHOLDS, rng
        )
        if posed.items:
            break
    assert posed.items and not any(posed.items)
    nothing = [0] * len(posed.segments)
    lost = posed.reward([LEAVE] * len(posed.items), nothing, later) - posed.reward(
        [CLOSE] + [LEAVE] * (len(posed.items) - 1), nothing, later
    )
    assert lost == pytest.approx(0.5)


def policy(z: float, w: float, posed: Any) -> DecisionDistributions:
    """One state with one item whose log odds of being closed are z, and segments with w."""
    relations = torch.full((1, 1, len(RELATIONS)), -30.0)
    relations[..., RELATIONS.index("unrelated")], relations[..., RELATIONS.index("end")] = 0, z
    worths = torch.full((1, len(posed.segments), len(WORTHS)), -30.0)
    worths[..., WORTHS.index("nothing")], worths[..., WORTHS.index("fact")] = 0, w
    return policy_of(relations, worths, [posed], (1.0, 1.0), THRESHOLDS)


def test_probabilities_sum_to_one_and_without_noise_it_decides_as_the_memory(
    batch_file: Path, e5: E5Weights
) -> None:
    state = State(read_asked(batch_file)[0], 1, {"f1": HELD})
    posed = posed_as_served(state, RowBuilder(e5), LaterConfig(), THRESHOLDS)
    for p in (1e-6, 0.2, DOUBT_ABOVE - 0.01, DOUBT_ABOVE + 0.01, 0.6, CLOSE_ABOVE + 0.01, 1 - 1e-6):
        drawn = policy(log_odds(p), log_odds(p), posed)
        for logs in (drawn.items_BI3, drawn.segments_BS2):
            assert torch.allclose(logs.exp().sum(-1), torch.ones(logs.shape[:-1]), atol=1e-5)
        wanted = CLOSE if p >= CLOSE_ABOVE else DOUBT if p >= DOUBT_ABOVE else LEAVE
        decided = drawn.without_noise(0, 1, 2)
        assert decided == greedy([log_odds(p)], [log_odds(p)] * 2, posed.least, THRESHOLDS)
        assert decided[0] == [wanted]


def test_what_is_drawn_is_compared_within_its_group(batch_file: Path, e5: E5Weights) -> None:
    config = RelationsConfig(group=8)
    state = State(read_asked(batch_file)[0], 1, {"f1": HELD})
    posed = posed_as_served(state, RowBuilder(e5), config.later, THRESHOLDS)
    drawn = policy(0.5, 0.0, posed)
    chosen = drawn.sample(8, torch.Generator().manual_seed(0))
    assert chosen[0].shape == (1, 8, 1) and chosen[1].shape == (1, 8, 2)
    worths = rewards([posed], *chosen, config)
    assert len(set(worths[0])) > 2
    assert worths[0, 3] == posed.reward(
        chosen[0][0, 3].tolist(), chosen[1][0, 3].tolist(), config.later
    )
    advantages = group_advantages(worths.ravel(), [8], config.advantage).advantages_K
    assert advantages.sum() == pytest.approx(0, abs=1e-9)
    many = drawn.sample(4000, torch.Generator().manual_seed(1))[0][0, :, 0]
    shares = torch.bincount(many, minlength=3) / 4000
    assert torch.allclose(shares, drawn.items_BI3[0, 0].exp(), atol=0.03)


def test_every_turn_is_met_in_its_order(batch_file: Path) -> None:
    walk = DialogueWalk(read_asked(batch_file), seed=3)

    def met() -> set[tuple[int, int]]:
        found = walk.next(4)
        for place, state in found:
            assert state.turn == place.turn and dict(state.held) == place.held
            walk.move(place, {})
        return {(place.dialogue, place.turn) for place, _ in found}

    assert met() == {(0, 0), (1, 0), (2, 0), (3, 0)}
    # What a tool says is no decision of the model; where one dialogue ended, another begins.
    second = met()
    assert second >= {(0, 1), (1, 2), (3, 1)} and len(second) == 4
    assert walk.started == 5


def test_a_walk_goes_on_from_its_state(batch_file: Path) -> None:
    dialogues = read_asked(batch_file)

    def steps(walk: DialogueWalk, count: int) -> list[tuple[int, int, list[str]]]:
        seen = []
        for _ in range(count):
            for place, _ in walk.next(3):
                seen.append((place.dialogue, place.turn, sorted(place.held)))
                told = dict.fromkeys(dialogues[place.dialogue].told[place.turn], HELD)
                walk.move(place, place.held | told)
        return seen

    whole, half, other = (DialogueWalk(dialogues, seed=1) for _ in range(3))
    expected = steps(whole, 6)
    begun = steps(half, 3)
    other.restore(json.loads(json.dumps(half.state)))
    assert begun + steps(other, 3) == expected


class _Gold:
    """A model that says of every item and sentence what the dialogue says."""

    about = About(hidden=0, layers=0, heads=0, layer_norm_eps=0.0)

    def __init__(self, dialogues: list[AskedDialogue]) -> None:
        self._said = {turn.text: (one, n) for one in dialogues for n, turn in enumerate(one.turns)}

    def relate(self, message: str, before: object, items: list[str], role: str) -> np.ndarray:
        dialogue, turn = self._said[message]
        gone = [dialogue.fact(name) for name in dialogue.gone(turn)]
        meant = {text for fact in gone for text in (fact.item, fact.statement)}
        found = np.zeros((len(items), len(RELATIONS)), dtype=np.float32)
        for n, text in enumerate(items):
            found[n, RELATIONS.index("end" if text in meant else "unrelated")] = 1
        return found

    def worth(self, message: str, before: object, segments: list[str], role: str) -> np.ndarray:
        dialogue, turn = self._said[message]
        quotes = [fact.quote for fact in dialogue.told[turn].values()]
        found = np.zeros((len(segments), len(WORTHS)), dtype=np.float32)
        for n, segment in enumerate(segments):
            fact = any(quote in segment or segment in quote for quote in quotes)
            found[n, WORTHS.index("fact" if fact else "nothing")] = 1
        return found


class _Keeper(_Gold):
    """One that keeps everything and closes nothing."""

    def relate(self, message: str, before: object, items: list[str], role: str) -> np.ndarray:
        return np.eye(len(RELATIONS), dtype=np.float32)[[0] * len(items)]

    def worth(self, message: str, before: object, segments: list[str], role: str) -> np.ndarray:
        return np.eye(len(WORTHS), dtype=np.float32)[[WORTHS.index("fact")] * len(segments)]


def test_who_decides_as_the_dialogues_say_answers_everything(batch_file: Path) -> None:
    dialogues = read_asked(batch_file)
    right = answered(_Gold(dialogues), dialogues, LaterConfig())["en"]  # type: ignore[arg-type]
    assert (right.worth, right.found, right.misled, right.closed) == (1, 1, 0, 1)
    assert np.isnan(right.left)  # every turn with items closes one
    assert (right.kept, right.noise) == (1, 0)
    every = answered(_Keeper(dialogues), dialogues, LaterConfig())["en"]  # type: ignore[arg-type]
    # Montreal beside Ottawa is half an answer; what was taken back and the code mislead.
    assert (every.found, every.misled, every.closed, every.noise) == (1, 1, 0, 1)
    assert every.worth == pytest.approx((0.5 + 0 + 0 + 1 + 1) / 5)
    assert "| right | en | 100.0" in answers_table({"right": {"en": right}})


@pytest.fixture(scope="module")
def start(e5: E5Weights, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network that knows nothing yet."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("start") / "relations.npz"
    write_weights(RelationNetwork(e5, layers=1).to_weights(relation_temperature=2.0), path)
    return path


def settings(data: Path, out: Path, start: Path, **more: Any) -> RelationsConfig:
    small = {"layers": 1, "batch": 4, "group": 8, "steps": 6, "save_steps": 3, "algorithm": "grpo"}
    return RelationsConfig(data=[data], out=out, start=start, **{**small, **more})


def test_weights_begin_where_another_run_ended(start: Path, e5: E5Weights) -> None:
    weights = read_weights(start)
    network = RelationNetwork(e5, layers=1)
    network.load_weights(weights)
    again = network.to_weights(relation_temperature=2.0)
    assert all(np.array_equal(again.vectors[n], v) for n, v in weights.vectors.items())
    assert all(np.array_equal(again.matrices[n][0], m) for n, (m, _) in weights.matrices.items())
    with pytest.raises(BadInput, match="1 layers of 384"):
        RelationNetwork(e5, layers=2).load_weights(weights)


@pytest.mark.parametrize("share", [0.25])
def test_the_written_weights_keep_their_share_of_the_start(
    batch_file: Path, tmp_path: Path, start: Path, share: float
) -> None:
    run = train(
        settings(
            *(batch_file, tmp_path / "run", start),
            **{"algorithm": "supervised", "group": 16, "steps": 3},
            **{"learning_rate": 1e-2, "start_share": share},
        )
    )
    written, began = read_weights(run / "final" / "relations.npz"), read_weights(start)
    state = torch.load(run / "final" / "trainer_state.pt", weights_only=True)
    name = "layers.0.wide.bias"
    ended = next(v for k, v in state["network"].items() if k.endswith("wide.bias")).numpy()
    assert np.abs(ended - began.vectors[name]).max() > 1e-3
    mean = share * began.vectors[name] + (1 - share) * ended
    assert np.allclose(written.vectors[name], mean, atol=1e-6)
    matrix, scales = written.matrices["layers.0.wide"]
    ended = next(v for k, v in state["network"].items() if k.endswith("wide.weight")).numpy()
    values, its = began.matrices["layers.0.wide"]
    mean = share * values * its[:, None] + (1 - share) * ended
    assert np.allclose(matrix * scales[:, None], mean, atol=2 * float(scales.max()))


def test_a_share_of_no_start_is_refused(batch_file: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="start=FILE"):
        train(RelationsConfig(data=[batch_file], out=tmp_path / "run", start_share=0.5))


@pytest.mark.slow
def test_a_run_improves_what_its_decisions_are_worth(
    batch_file: Path, tmp_path: Path, start: Path
) -> None:
    run = train(
        settings(
            *(batch_file, tmp_path / "run", start),
            **{"steps": 60, "save_steps": 60, "learning_rate": 1e-3, "beta": 0.0, "batch": 8},
        )
    )
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    gained = [line["reward_mean"] for line in lines]
    assert np.mean(gained[-15:]) > np.mean(gained[:15]) + 0.15
    assert all(abs(line["reward_normalised_mean"]) < 1e-6 for line in lines)
    assert (run / "curves.png").is_file()
    trained = read_weights(run / "final" / "relations.npz")
    assert trained.about.relation_temperature == 2.0 and trained.about.origin["step"] == 60


def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(
    batch_file: Path, tmp_path: Path, start: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(settings(batch_file, tmp_path / "whole", start))
    step = Steps.one_step

    def dies(self: Steps) -> dict[str, Any]:
        if self.step == 4:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(Steps, "one_step", dies)
    with pytest.raises(KeyboardInterrupt):
        train(settings(batch_file, tmp_path / "half", start))
    monkeypatch.undo()
    resumed = train(RelationsConfig(resume=tmp_path / "half"))
    first, second = (read_weights(run / "final" / "relations.npz") for run in (whole, resumed))
    for name in first.vectors:
        assert np.array_equal(first.vectors[name], second.vectors[name]), name
    for name in first.matrices:
        assert np.array_equal(first.matrices[name][0], second.matrices[name][0]), name


def test_what_has_no_questions_is_refused(tmp_path: Path, start: Path) -> None:
    mute = written(tmp_path / "en-x.jsonl", [{**MOVED, "q": []}])
    with pytest.raises(BadInput, match="later questions"):
        train(settings(mute, tmp_path / "run", start))
    asking = written(tmp_path / "en-y.jsonl", [MOVED])
    pairs = written(tmp_path / "pairs.jsonl", [{"a": "I have a car", "b": "ok", "label": "keep"}])
    with pytest.raises(BadInput, match="leave out pairs"):
        train(settings(asking, tmp_path / "run", start, pairs=[pairs]))
    unknown = {**MOVED, "q": [["Where?", ["f9"], "x"]]}
    with pytest.raises(BadInput, match=r"Line 1 .*f9"):
        read_asked(written(tmp_path / "en-z.jsonl", [unknown]))


def test_the_final_model_is_measured_by_later_questions(
    batch_file: Path, tmp_path: Path, start: Path
) -> None:
    unseen = written(tmp_path / "en-y.jsonl", [MOVED, SECRET, MOVED, SECRET])
    run = train(settings(batch_file, tmp_path / "run", start, steps=2, eval_data=[unseen]))
    assert "this run | en |" in (run / "later_questions.md").read_text()
    kept = read_weights(run / "final" / "relations.npz").about
    assert kept.relation_temperature == 2.0  # GRPO learns for the thresholds as they are
