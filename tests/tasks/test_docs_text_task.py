"""What docs/text-task.md says is true: its rewards exist, its settings load, its example runs."""

from __future__ import annotations

import re
from pathlib import Path

from memograd.config import load_settings
from memograd.rewards import REWARDS, SCORES, parse_rewards
from memograd.tasks.text.settings import TextTrainConfig

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "text-task.md").read_text("utf-8")


def test_the_table_has_every_built_in_reward() -> None:
    names = re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(names))) == sorted([*REWARDS, *SCORES])


def test_the_preset_says_what_the_page_says() -> None:
    config = load_settings(TextTrainConfig, ROOT / "examples" / "text" / "qwen.toml", [])
    assert (config.num_generations, config.temperature, config.learning_rate) == (8, 0.8, 1e-5)
    assert (config.beta, config.epsilon, config.entropy_coef) == (0.1, 0.2, 0.01)
    assert config.max_grad_norm == 0.5
    (spec,) = re.findall(r"'(length\(low=50, high=50\),coherence)'", PAGE)
    assert len(parse_rewards(spec)) == 2


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / target).is_file(), target
