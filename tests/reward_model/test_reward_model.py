"""A reward model's scores: independent of batch mates, the same in transformers, saved and read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from memograd.config import LoraConfig
from memograd.errors import BadInput, MemogradError
from memograd.reward_model.api import Item
from memograd.reward_model.model import BATCH_TOKENS, RewardModel

QUESTION = [{"role": "user", "content": "药怎么吃？"}]
ANSWERS = ["饭后服用", "no", "", "take it after a meal, twice a day " * 6, "饭后", "a" * 90]


@pytest.fixture(scope="module")
def model(polite_run) -> RewardModel:
    return RewardModel.open(polite_run, device="cpu")


@pytest.fixture(scope="module")
def fresh(tiny_model_folder) -> RewardModel:
    return RewardModel.begin(str(tiny_model_folder), lora=LoraConfig(r=4), device="cpu")


def items() -> list[Item]:
    return [Item(QUESTION, answer) for answer in ANSWERS]


def test_a_score_does_not_depend_on_batch_mates(model) -> None:
    alone = [model.score([item])[0] for item in items()]
    assert model.score(items()) == pytest.approx(alone, abs=1e-4)
    assert len({round(score, 3) for score in alone}) == len(ANSWERS)
    for mate in ("", "x" * 700):
        beside = [model.score([item, Item("hm", mate)])[0] for item in items()]
        assert beside == pytest.approx(alone, abs=1e-4)


def test_nor_on_the_order(model) -> None:
    order = random.Random(1).sample(range(len(ANSWERS)), len(ANSWERS))
    shuffled = model.score([items()[index] for index in order])
    straight = model.score(items())
    assert shuffled == pytest.approx([straight[index] for index in order], abs=1e-4)


def test_many_forwards_give_the_scores_of_one(model, monkeypatch) -> None:
    straight = model.score(items())
    monkeypatch.setitem(BATCH_TOKENS, "cpu", 1)
    assert model.score(items()) == pytest.approx(straight, abs=1e-4)


def test_a_row_is_what_the_chat_template_makes(model) -> None:
    ids = model.encode(Item(QUESTION, "饭后"))
    text = model.tokenizer.decode(ids)
    assert text == "<|start|>user\n药怎么吃？<|end|><|start|>assistant\n饭后<|end|>"
    assert model.encode(Item("药怎么吃？", "饭后")) == ids


def test_the_end_token_is_seen(model) -> None:
    """The score is read at the end of the answer, not at the last token before it."""
    ids = model.encode(Item(QUESTION, "饭后"))
    assert model._forward([ids]) != pytest.approx(model._forward([ids[:-1]]), abs=1e-3)


def test_text_prompts_are_continued(tiny_model_folder) -> None:
    model = RewardModel.begin(
        str(tiny_model_folder), lora=None, device="cpu", string_prompts="text"
    )
    assert model.tokenizer.decode(model.encode(Item("2+2=", "4"))) == "2+2=4<|end|>"


def test_a_long_row_loses_its_beginning(tiny_model_folder) -> None:
    model = RewardModel.begin(str(tiny_model_folder), lora=None, device="cpu", max_length=20)
    whole = model.encode(Item(QUESTION, "x" * 100))
    assert model.shortened(whole) == whole[-20:]
    same_end = [Item("a" * 50, "x" * 100), Item("b" * 50, "x" * 100)]
    first, second = model.score(same_end)
    assert first == pytest.approx(second, abs=1e-5)


def test_max_length_is_at_most_the_context(tiny_model_folder) -> None:
    model = RewardModel.begin(str(tiny_model_folder), lora=None, device="cpu", max_length=10**6)
    assert model.card.max_length == 4096


def test_transformers_alone_gives_the_same_score(model, tmp_path) -> None:
    """Of the saved folder: its tokenizer, template, padding and weights."""
    from memograd.warm_start.reward_model import merge_reward_model

    folder = merge_reward_model(Path(model.name), tmp_path / "merged")
    theirs = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    chats = [[*QUESTION, {"role": "assistant", "content": answer}] for answer in ANSWERS]
    rows = tokenizer.apply_chat_template(chats, padding=True, return_dict=True, return_tensors="pt")
    with torch.no_grad():
        scores = theirs(**rows).logits[:, 0].tolist()
    assert model.score(items()) == pytest.approx(scores, abs=1e-4)
    assert RewardModel.open(folder, device="cpu").score(items()) == pytest.approx(scores, abs=1e-4)


def test_what_is_saved_is_read_back(fresh, tmp_path) -> None:
    for weight in fresh.parameters():
        torch.nn.init.normal_(weight.data, std=0.1, generator=torch.Generator().manual_seed(1))
    fresh.save(tmp_path / "saved")
    opened = RewardModel.open(tmp_path / "saved", device="cpu")
    assert opened.card == fresh.card
    assert opened.score(items()) == pytest.approx(fresh.score(items()), abs=1e-5)


def test_a_fresh_adapter_changes_nothing(tiny_model_folder) -> None:
    bare = RewardModel.begin(str(tiny_model_folder), lora=None, device="cpu", seed=3)
    adapted = RewardModel.begin(str(tiny_model_folder), lora=LoraConfig(), device="cpu", seed=3)
    assert adapted.score(items()) == pytest.approx(bare.score(items()), abs=1e-5)
    assert len(adapted.parameters()) < len(bare.parameters()) + 60
    assert any("score" in name for name, p in adapted.module.named_parameters() if p.requires_grad)


def test_a_score_that_is_no_number_is_an_error(tiny_model_folder) -> None:
    model = RewardModel.begin(str(tiny_model_folder), lora=None, device="cpu")
    model.module.score.weight.data.fill_(float("nan"))
    with pytest.raises(MemogradError, match=r"scored item \d with nan"):
        model.score(items())


def test_a_model_without_a_chat_template_wants_texts(tiny_model_folder, tmp_path) -> None:
    import shutil

    folder = tmp_path / "plain"
    shutil.copytree(tiny_model_folder, folder)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(BadInput, match="string_prompts=text"):
        RewardModel.begin(str(folder), lora=None, device="cpu")
    model = RewardModel.begin(str(folder), lora=None, device="cpu", string_prompts="text")
    assert len(model.score([Item("2+2=", "4")])) == 1
    with pytest.raises(BadInput, match="no chat template"):
        model.score(items())


def test_no_fitted_length_says_so(fresh) -> None:
    with pytest.raises(BadInput, match="length_slope=NUMBER"):
        fresh.length_slope()
