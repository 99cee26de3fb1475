"""A setting that nothing would read is refused where it is given, and not where it is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.test_docs_commands import PAGES, commands

from memograd.cli import main
from memograd.config.load import known_settings, load_settings
from memograd.config.unread import refuse_unread
from memograd.errors import BadInput
from memograd.tasks.registry import TASKS
from memograd.tasks.sql.settings import CI_FAST
from memograd.warm_start.settings import (
    DpoSettings,
    RewardModelSettings,
    SftSettings,
    WarmStartSettings,
)

IGNORED = [
    ("memory-ops", "algorithm=dqn explore=0.5", "explore"),
    ("memory-ops", "algorithm=ppo num_generations=4", "num_generations"),
    ("memory-ops", "algorithm=ppo gae_lambda=0.5", "gae_lambda"),
    ("memory-ops", "credit=trajectory explore=0.5", "explore"),
    ("memory-ops", "trials=2", "trials"),
    ("memory-ops", "gamma=0.5", "gamma"),
    ("memory-ops", "epsilon=0.5", "epsilon"),
    ("memory-ops", "algorithm=supervised clip=0.1", "clip"),
    ("memory-ops", "data=a.jsonl logs=4", "logs"),
    ("memory-ops", "data=a.jsonl eval_data=b.jsonl languages=zh", "languages"),
    ("memory-ops", "reward=opportunity_cost change_cost=0.1", "change_cost"),
    ("retrieval", "samples=4", "samples"),
    ("retrieval", "algorithm=grpo reader=other", "reader"),
    ("retrieval", "data=a.jsonl logs=4", "logs"),
    ("retrieval", "eval_data=b.jsonl held_out=0.5", "held_out"),
    ("memory-qa", "memory.keep=items memory.retrieval=ranked", "memory.retrieval"),
    ("memory-construct", "data=a.jsonl build.logs=4", "build.logs"),
    ("memory-construct", "text.eval_data=b.jsonl build.eval_logs=4", "build.eval_logs"),
    ("memory-construct", "build.credit=trajectory build.walks=4", "build.walks"),
    ("memory-construct", "build.grow_every=4", "build.grow_every"),
    ("memory-construct", "episodes.chat_template=a.jinja", "episodes.chat_template"),
    ("memory-ops-text", "data=a.jsonl build.languages=zh", "build.languages"),
    ("text", "text.eval_data=b.jsonl text.eval_fraction=0.5", "text.eval_fraction"),
    ("text", "beta=0 kl=k2", "kl"),
    ("text", "algorithm=rloo kl_correction=ratio", "kl_correction"),
    ("text", "algorithm=cispo epsilon=0.1", "epsilon"),
    ("text", "gae_lambda=0.5", "gae_lambda"),
    ("text", "schedules.min_generations=3", "schedules.min_generations"),
    ("text", "schedules.pass_reward=0.9", "schedules.pass_reward"),
    ("text", "schedules.replay_max_age=3", "schedules.replay_max_age"),
    ("text", "sampler=vllm sampler.url=http://a:1 sampler.command=b", "sampler.command"),
    ("sql", "served.concurrency=2", "served.concurrency"),
    ("sql", "served.agent=a.py:run episodes.max_seconds=2", "episodes.max_seconds"),
    ("sql", "served.agent=a.py:run episodes.max_turns=2", "episodes.max_turns"),
    ("relations", "talk_share=0.2", "talk_share"),
    ("relations", "crowded=0.2", "crowded"),
    ("relations", "data=a.jsonl case_authors=ann", "case_authors"),
    ("relations", "group=8", "group"),
    ("relations", "later.token_cost=0.1", "later.token_cost"),
    ("relations", "data=a.jsonl later.doubt_misleads=0.1", "later.doubt_misleads"),
    ("relations", "learning_layers=0 layer_decay=0.9", "layer_decay"),
    ("relations", "algorithm=grpo talks=a.jsonl", "talks"),
    ("relations", "algorithm=grpo smoothing=0.1", "smoothing"),
]


@pytest.mark.parametrize(("task", "settings", "name"), IGNORED)
def test_what_nothing_reads_is_named_with_the_cause(task: str, settings: str, name: str) -> None:
    config = load_settings(TASKS[task].settings, None, settings.split())
    with pytest.raises(BadInput, match=rf"^{name}=\S+ would be ignored, for .*: leave {name} out"):
        refuse_unread(config)


@pytest.mark.parametrize(
    ("kind", "settings", "name"),
    [
        (SftSettings, "data=a steps=3 epochs=2", "epochs"),
        (SftSettings, "data=a memory.top_k=3", "memory.top_k"),
        (SftSettings, "task=memory-qa string_prompts=chat", "string_prompts"),
        (DpoSettings, "data=a steps=3 epochs=2", "epochs"),
        (RewardModelSettings, "data=a eval_data=b eval_fraction=0.2", "eval_fraction"),
        (RewardModelSettings, "data=a tuning=full lora.r=4", "lora.r"),
        (RewardModelSettings, "data=a tuning=full lora.preset=memory-guide", "lora.preset"),
        (
            SftSettings,
            "data=a task=memory-qa memory.keep=items memory.retrieval=dense",
            "memory.retrieval",
        ),
    ],
)
def test_so_it_is_with_warm_starts(kind: type[WarmStartSettings], settings: str, name: str) -> None:
    with pytest.raises(BadInput, match=rf"^{name}=\S+ would be ignored, for "):
        refuse_unread(load_settings(kind, None, settings.split()))
    told = [one for one in settings.split() if not one.startswith(name)]
    refuse_unread(load_settings(kind, None, told))


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        *[(name, "") for name in TASKS],
        *[("text", f"algorithm={name} beta=0") for name in ("rloo", "ppo", "reinforce_pp")],
        ("text", "algorithm=ppo gae_lambda=0.5"),
        ("text", "schedules.curriculum=pass_rate schedules.pass_reward=0.9"),
        ("memory-ops", "algorithm=dqn explore=0.25 epsilon=0.5 trials=2"),
        ("memory-ops", "algorithm=ppo gamma=0.5 gae_lambda=0.5"),
        ("memory-ops", "credit=trajectory num_generations=4 advantage=group"),
        ("memory-ops", "data=a.jsonl languages=zh eval_logs=2"),
        ("sql", "served.agent=a.py:run served.concurrency=2"),
        ("sql", " ".join((*CI_FAST, "served.agent=a.py:run"))),
        ("relations", "talks=a.jsonl talk_share=0.2 crowded=0.2 layer_decay=0.9"),
        ("relations", "case_authors=ann"),  # of the cases of the weights that ship
        ("relations", "algorithm=grpo group=8 later.token_cost=0.1 before_kept=0.1"),
        ("relations", "data=a.jsonl eval_data=b.jsonl later.doubt_misleads=0.1"),
    ],
)
def test_what_is_read_or_left_out_passes(task: str, settings: str) -> None:
    refuse_unread(load_settings(TASKS[task].settings, None, settings.split()))


@pytest.mark.parametrize("task", TASKS)
def test_the_settings_that_may_be_unread_exist(task: str) -> None:
    kind = TASKS[task].settings
    assert {name for rule in kind.unread for name in rule.names} <= known_settings(kind).keys()


def documented() -> Iterator[tuple[str, tuple[str, ...]]]:
    """The tasks and settings of all `memograd train` commands in README and docs, but for those
    whose settings a variable of the shell holds."""
    for page in PAGES:
        for words in commands(page):
            shell = any(re.match(r"\$[a-z]", word) for word in words)
            if words[0] == "train" and words[1:2] and words[1] in TASKS and not shell:
                named = [re.sub(r"=\$\(.*", "=a.jsonl", word) for word in words[2:]]
                # without placeholders such as seed=S
                told = [word for word in named if re.fullmatch(r"[a-z_.]+=[^$A-Z]+", word)]
                yield words[1], tuple(told)


def test_no_command_of_the_docs_gives_one() -> None:
    checked = 0
    for task, told in set(documented()):
        try:
            config = load_settings(TASKS[task].settings, None, told)
        except BadInput:  # what is left without its placeholders is no whole command
            continue
        if config.resume is None:
            refuse_unread(config)
            checked += 1
    assert checked > 20


def test_the_command_line_refuses_it_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        main(["train", "text", "data=none.jsonl", "gae_lambda=0.5"])
    assert exit_.value.code == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("memograd: gae_lambda=0.5 would be ignored, for ")
    assert not list(tmp_path.iterdir())
