"""Settings survive their JSON form and their command-line form; mistakes are one clear sentence."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memograd.config import (
    LoraConfig,
    SchedulesConfig,
    known_settings,
    load_settings,
)
from memograd.config.algorithms import ALGORITHMS
from memograd.config.settings import Settings, TrainConfig
from memograd.errors import BadInput
from memograd.tasks.agent.settings import ServedTrainConfig
from memograd.tasks.memory_ops.settings import OperationsConfig
from memograd.tasks.memory_qa.settings import MemoryConfig, MemoryQATrainConfig
from memograd.tasks.registry import TASKS, tasks_that_read


def load(file: Path | None, overrides: list[str]) -> MemoryQATrainConfig:
    """Settings of one task, as the command line reads them."""
    return load_settings(MemoryQATrainConfig, file, overrides, read_elsewhere=tasks_that_read)


KEYS = known_settings(MemoryQATrainConfig)
counts = st.integers(1, 10**9)
positive = st.floats(1e-12, 1e9)
not_negative = st.floats(0, 1e9)
# What can be typed as one item of a list on a command line; names in Chinese included.
names = st.text(string.ascii_letters + string.digits + "-_./ 对话", min_size=1).filter(
    lambda name: name.strip() == name and name.lower() != "none"
)
paths = st.none() | names.map(Path)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)

loras = st.builds(
    LoraConfig,
    r=counts,
    alpha=counts,
    dropout=st.floats(0, 1, exclude_max=True),
    target_modules=st.lists(names, min_size=1),
    preset=st.sampled_from([None, "memory-guide"]),
)
memories = st.builds(MemoryConfig, top_k=counts, token_budget=counts, embedder=texts) | st.builds(
    MemoryConfig, top_k=counts, keep=st.just("items"), policy=paths
)
# A group of `num_generations`, whatever it is, lies between these sizes.
schedules = st.builds(
    SchedulesConfig,
    curriculum=st.sampled_from(["off", "pass_rate"]),
    curriculum_floor=st.floats(0, 1, exclude_min=True),
    group_sizes=st.sampled_from(["constant", "difficulty"]),
    min_generations=st.just(2),
    max_generations=st.none() | st.integers(10**9, 2**40),
    pass_reward=st.floats(-1e9, 1e9),
    pass_rate_memory=st.floats(0, 1, exclude_max=True),
    replay_groups=st.integers(0, 10**9),
    replay_capacity=counts,
    replay_max_age=counts,
    replay_max_uses=counts,
)
configs = st.builds(
    MemoryQATrainConfig,
    data=paths,
    train=st.lists(names),
    eval=st.lists(names),
    out=paths,
    resume=st.none(),
    model=texts,
    device=st.sampled_from(["auto", "cpu", "cuda", "mps"]),
    seed=st.integers(0, 2**63),
    lora=loras,
    memory=memories,
    schedules=schedules,
    steps=counts,
    prompts_per_step=counts,
    num_generations=st.integers(2, 10**9),
    temperature=positive,
    algorithm=st.sampled_from(list(ALGORITHMS)),
    advantage=st.sampled_from(["group", "centred", "leave_one_out", "batch", "group_batch"]),
    ratio=st.sampled_from(["token", "sequence", "product", "weight"]),
    aggregation=st.sampled_from(["rollout", "token", "constant"]),
    epsilon_high=st.none() | positive,
    kl=st.sampled_from(["k2", "k3"]),
    kl_in=st.sampled_from(["loss", "reward"]),
    kl_correction=st.sampled_from(["off", "ratio"]),
    resample_rounds=st.integers(0, 10**9),
    overlong_share=st.floats(0, 1, exclude_max=True),
    reward_normalisation=st.sampled_from(["total", "each"]),
    importance_cap=st.none() | positive,
    learning_rate_schedule=st.sampled_from(["constant", "linear", "cosine"]),
    max_completion_length=counts,
    max_prompt_length=st.none() | counts,
    rewards=texts,
    learning_rate=positive,
    warmup_steps=st.integers(0, 10**9),
    weight_decay=not_negative,
    max_grad_norm=positive,
    num_iterations=counts,
    epsilon=st.floats(0, 1, exclude_min=True, exclude_max=True),
    beta=not_negative,
    entropy_coef=not_negative,
    forward=st.sampled_from(["auto", "packed", "tree", "rows"]),
    save_steps=counts,
    rollout_log_steps=counts,
    eval_batch_size=counts,
    track=st.lists(st.sampled_from(["tensorboard", "wandb", "swanlab", "trackio"])),
)


def value_of(config: MemoryQATrainConfig, key: str) -> Any:
    section, _, name = key.rpartition(".")
    return getattr(getattr(config, section) if section else config, name)


def as_text(value: Any) -> str:
    if value is None:
        return "none"
    return ",".join(value) if isinstance(value, list) else str(value)


# Round trips


@given(configs)
def test_json_form_loads_back_equal(config: MemoryQATrainConfig) -> None:
    assert MemoryQATrainConfig.model_validate_json(config.model_dump_json()) == config


@given(configs)
def test_command_line_form_loads_back_equal(config: MemoryQATrainConfig) -> None:
    overrides = [
        f"{key}={as_text(value_of(config, key))}" for key in known_settings(MemoryQATrainConfig)
    ]
    assert load(None, overrides) == config


def test_defaults_are_as_documented() -> None:
    config = load(None, [])
    assert config == MemoryQATrainConfig()
    assert (config.steps, config.prompts_per_step, config.num_generations) == (60, 8, 8)
    assert (config.learning_rate, config.epsilon, config.beta) == (3e-4, 0.2, 0.01)
    assert (config.lora.r, config.lora.alpha, config.memory.top_k) == (16, 32, 5)
    assert config.memory.token_budget == 20_000
    assert config.forward == "auto"


def test_every_setting_is_described() -> None:
    for key, field in known_settings(MemoryQATrainConfig).items():
        assert field.description and field.description.endswith("."), key


# Where values come from

FILE = """
# 训练
data = "对话.json"
train = ["conv-26", "conv-30"]
steps = 100
temperature = 1
[lora]
r = 8
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_command_line_wins_over_file_wins_over_defaults(file: Path) -> None:
    config = load(file, ["steps=5", "lora.alpha=64", "steps=7"])
    assert (config.steps, config.temperature, config.num_generations) == (7, 1.0, 8)
    assert (config.lora.r, config.lora.alpha) == (8, 64)
    assert config.data == Path("对话.json")
    assert config.train == ["conv-26", "conv-30"]


def test_values_on_the_command_line(file: Path) -> None:
    assert load(file, ["train=conv-26"]).train == ["conv-26"]
    assert load(file, ["train=conv-26, conv-30,"]).train == ["conv-26", "conv-30"]
    assert load(file, ["train="]).train == []
    assert load(file, ["data=none"]).data is None
    assert load(file, ["data=a=b.json"]).data == Path("a=b.json")
    assert load(None, ["learning_rate=3e-5"]).learning_rate == 3e-5


def test_explicit_values_win_over_the_preset(tmp_path: Path) -> None:
    preset = load(None, ["lora.preset=memory-guide"]).lora
    assert (preset.r, preset.alpha) == (64, 16)
    file = tmp_path / "run.toml"
    file.write_text('lora = { preset = "memory-guide", alpha = 128 }')
    mixed = load(file, ["lora.r=8"]).lora
    assert (mixed.r, mixed.alpha, mixed.preset) == (8, 128, "memory-guide")


def test_a_preset_sets_its_choices_and_explicit_ones_win(tmp_path: Path) -> None:
    dapo = load(None, ["algorithm=dapo"])
    assert (dapo.aggregation, dapo.epsilon, dapo.epsilon_high) == ("token", 0.2, 0.28)
    assert (dapo.beta, dapo.resample_rounds, dapo.overlong_share) == (0.0, 3, 0.2)
    file = tmp_path / "run.toml"
    file.write_text('beta = 0.1\naggregation = "constant"')
    mixed = load(file, ["algorithm=dapo", "epsilon_high=none", "resample_rounds=0"])
    assert (mixed.beta, mixed.aggregation, mixed.epsilon_high) == (0.1, "constant", None)
    assert (mixed.resample_rounds, mixed.overlong_share) == (0, 0.2)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_preset_is_made_of_settings_and_resolves(name: str) -> None:
    resolved = load(None, [f"algorithm={name}"])
    assert {key: getattr(resolved, key) for key in ALGORITHMS[name]} == ALGORITHMS[name]
    # Resolved settings say it all: the name adds nothing to them.
    assert MemoryQATrainConfig(**{**resolved.model_dump(), "algorithm": "grpo"}).model_copy(
        update={"algorithm": name}
    ) == MemoryQATrainConfig.model_validate_json(resolved.model_dump_json())


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("stop=</answer>", ["</answer>"]),
        ("stop=a,b", ["a", "b"]),
        ('stop=["</answer>"]', ["</answer>"]),
        ('stop=["a, b", "\\n"]', ["a, b", "\n"]),
        ("stop=[]", []),
    ],
)
def test_a_list_is_written_with_commas_or_as_json(written: str, read: list[str]) -> None:
    assert load(None, [written]).stop == read


def test_the_default_algorithm_is_grpo() -> None:
    assert load(None, ["algorithm=grpo"]) == MemoryQATrainConfig()


def test_one_rollout_a_group_is_enough_for_a_batch_baseline() -> None:
    assert load(None, ["algorithm=reinforce_pp", "num_generations=1"]).num_generations == 1


def test_one_rollout_a_prompt_is_enough_for_a_value_head() -> None:
    assert load(None, ["algorithm=ppo", "num_generations=1"]).advantage == "gae"


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        MemoryQATrainConfig().steps = 3  # type: ignore[misc]


# Mistakes

LINE = "the command line"


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["stop=[x"], f"stop in {LINE} begins with [ and is not JSON"),
        (["stop=[3]"], "stop must be"),
        (["stop=\n"], f"stop in {LINE} has an entry of blanks or line breaks: write the list"),
        (["stop=a, ,b"], f"stop in {LINE} has an entry of blanks or line breaks"),
        (["steps"], f"{LINE.capitalize()} has 'steps' where key=value is expected"),
        (["=3"], "'=3' where key=value is expected"),
        (["steps=abc"], f"steps must be a whole number of at least 1, but {LINE} says 'abc'."),
        (["steps=0"], "steps must be a whole number of at least 1"),
        (["steps=3.5"], "steps must be a whole number"),
        (["num_generations=0"], "num_generations must be a whole number of at least 1"),
        (["num_generations=1"], "num_generations=1 leaves advantage=group nothing to compare with"),
        (
            ["num_generations=1", "advantage=batch", "resample_rounds=2"],
            "resample_rounds replaces groups whose rewards are all equal, and with",
        ),
        (
            ["num_generations=1", "advantage=batch", "prompts_per_step=1"],
            "advantage=batch has nothing to compare with in a batch of one rollout",
        ),
        (["algorithm=vpg"], "algorithm must be one of grpo, dr_grpo, rloo, dapo, gspo, cispo,"),
        (["advantage=best"], "advantage must be one of group, centred, leave_one_out, batch, "),
        (["gae_lambda=1.1"], "gae_lambda must be a number of at least 0 and of at most 1"),
        (["activation_checkpointing=maybe"], "activation_checkpointing must be true or false"),
        (["shard=fsdp2", "forward=rows"], "shard=fsdp2 computes over token trees"),
        (["kl=k1"], "kl=k1 in the loss has no gradient on average: set kl_correction=ratio"),
        (["temperature_end=1.2"], "temperature_schedule and temperature_end go together"),
        (["temperature_schedule=linear"], "go together: set both, or neither"),
        (
            [
                *("temperature_schedule=variance", "temperature_end=1.2", "num_generations=1"),
                "algorithm=reinforce_pp",
            ],
            "temperature_schedule=variance goes by the groups whose rewards are all equal, and",
        ),
        (["schedules.curriculum=easy"], "schedules.curriculum must be one of off, pass_rate"),
        (["schedules.curriculum_floor=0"], "schedules.curriculum_floor must be a number above 0"),
        (["schedules.min_generations=1"], "must be a whole number of at least 2"),
        (["schedules.pass_rate_memory=1"], "must be a number of at least 0 and below 1"),
        (
            ["schedules.group_sizes=difficulty", "schedules.max_generations=6"],
            "num_generations=8 rollouts on average, which must lie between "
            "schedules.min_generations=2 and schedules.max_generations=6",
        ),
        (
            ["schedules.group_sizes=difficulty", "num_generations=1", "algorithm=reinforce_pp"],
            "num_generations=1 rollouts on average, which must lie between",
        ),
        (
            ["schedules.replay_groups=1", "num_generations=1", "algorithm=reinforce_pp"],
            "schedules.replay_groups replays groups whose rewards differ",
        ),
        (["out=a\udcff"], f"out in {LINE} holds half of a character, or bytes that are no UTF-8"),
        (["train=a,\udcff"], f"train in {LINE} holds half of a character, or bytes that are no"),
        (["temperature=0"], "temperature must be a number above 0"),
        ([f"seed={2**64}"], "seed must be a whole number of at least 0 and below 1844674407370955"),
        (["learning_rate=inf"], "learning_rate must be a number above 0"),
        (["epsilon=nan"], "epsilon must be a number above 0 and below 1"),
        (["epsilon=1"], "epsilon must be a number above 0 and below 1"),
        (["max_prompt_length=0"], "max_prompt_length must be a whole number of at least 1 or none"),
        (["data="], f"data must be a path or none, but {LINE} says ''."),
        (["model="], "model must be a text that is not empty"),
        (
            ["forward=trie"],
            f"forward must be one of auto, packed, tree, rows, but {LINE} says 'trie'.",
        ),
        (["lora.preset=big"], "lora.preset must be one of memory-guide or none"),
        (["lora.target_modules="], "must be a list of texts that is not empty"),
        (
            ["learning_rte=1"],
            f"Unknown key 'learning_rte' in {LINE}: did you mean learning_rate or",
        ),
        (["r=8"], f"Unknown key 'r' in {LINE}: did you mean lora.r?"),
        (["zzz=1"], "--help lists the"),
        (["memory=3"], "is a section: set memory.top_k, memory.token_budget, memory.embedder"),
        (["out=a", "resume=b"], "out and resume exclude each other"),
    ],
)
def test_mistake_on_the_command_line(overrides: list[str], sentence: str) -> None:
    with pytest.raises(BadInput) as error:
        load(None, overrides)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_mistake_in_a_text_that_may_be_none() -> None:
    with pytest.raises(
        BadInput, match=r"served\.agent must be a text that is not empty or none, but"
    ):
        load_settings(ServedTrainConfig, None, ["served.agent="])


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ('steps = "60"', "steps must be a whole number of at least 1, but the file {} says '60'."),
        ("steps = 1.0", "steps must be a whole number"),
        ("steps = true", "steps must be a whole number"),
        ("temperature = nan", "temperature must be a number above 0, but the file {} says nan"),
        ('train = "conv-26"', "train must be a list of texts, but the file {} says 'conv-26'."),
        ("train = [26]", "train must be a list of texts, but the file {} says [26]."),
        ("seed = 2024-01-01", "seed must be a whole number"),
        ("[lora]\nrank = 3", "Unknown key 'lora.rank' in the file {}"),
        ("lora = 3", "lora in the file {} is a section"),
        ("[steps]\nx = 3", "Unknown key 'steps.x' in the file {}: did you mean steps?"),
        ("steps = 3\nsteps = 4", "The configuration file {} is not valid TOML"),
        ("seed = 1\nsteps = \n", "(at line 2, column 9)"),
    ],
)
def test_mistake_in_the_file(tmp_path: Path, toml: str, sentence: str) -> None:
    file = tmp_path / "run.toml"
    file.write_text(toml, encoding="utf-8")
    with pytest.raises(BadInput) as error:
        load(file, ["seed=3"] if "seed" not in toml else [])
    assert sentence.format(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_the_origin_is_that_of_the_value_that_counts(file: Path) -> None:
    with pytest.raises(BadInput, match=r"lora\.r must be .* but the command line says 0"):
        load(file, ["lora.r=0"])
    file.write_text("steps = 0")
    assert load(file, ["steps=3"]).steps == 3


def test_a_file_with_the_mark_of_windows_editors(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_bytes(b"\xef\xbb\xbfsteps = 7\n")
    assert load(tmp_path / "run.toml", []).steps == 7


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"missing\.toml cannot be read: No such file"):
        load(tmp_path / "missing.toml", [])
    with pytest.raises(BadInput, match="cannot be read: Is a directory"):
        load(tmp_path, [])
    (tmp_path / "latin.toml").write_bytes(b"model = '\xe9'")
    with pytest.raises(BadInput, match=r"latin\.toml is not UTF-8 text"):
        load(tmp_path / "latin.toml", [])


# Settings belong to their task


@pytest.mark.parametrize("task", TASKS)
def test_every_setting_of_every_task_is_described(task: str) -> None:
    for key, field in known_settings(TASKS[task].settings).items():
        assert field.description and field.description.endswith("."), key


@pytest.mark.parametrize("kind", [TrainConfig, OperationsConfig])
def test_every_shared_setting_stands_in_one_group_of_the_help(kind: type[Settings]) -> None:
    grouped = [name for names in kind.groups.values() for name in names]
    assert sorted(grouped) == sorted(kind.model_fields)


def test_a_setting_of_another_task_is_refused_by_that_tasks_name() -> None:
    with pytest.raises(BadInput, match=r"sql\.database in the command line is a setting of sql"):
        load(None, ["sql.database=x.sqlite"])
    with pytest.raises(BadInput, match=r"did you mean memory\.top_k"):
        load(None, ["memory.top_kk=3"])
