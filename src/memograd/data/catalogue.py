"""The public data sets that `memograd data get` can fetch, as a table.

None of the data is part of memograd; each set keeps its makers' licence, which stands here as far
as they state one. Addresses name a fixed revision wherever one is known to us, and then the
checksum too, so that a file is either the one that others measured on or refused. Where a checksum
is None nobody told us the true one: the first download records its own (`download`).

Invariant: every set names a loader that exists. Standard library and errors only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from memograd.errors import BadInput

HUB: Final = "https://huggingface.co"
GITHUB: Final = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class RemoteFile:
    """One file to fetch. name: what it is called here. sha256, size (bytes): None if unknown."""

    name: str
    url: str
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True)
class DataSet:
    """A public data set. home: its page for people. loader: a function of `memograd.data`."""

    about: str
    licence: str
    home: str
    loader: str
    files: tuple[RemoteFile, ...]


_LOCOMO = f"{GITHUB}/snap-research/locomo/3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376/data"
_LONGMEMEVAL = (
    f"{HUB}/datasets/xiaowu0162/longmemeval-cleaned"
    "/resolve/98d7416c24c778c2fee6e6f3006e7a073259d48f"
)
_MEMDAILY = (
    f"{GITHUB}/nuster1128/MemSim/684e7ad94b9334f47a5f28a732576d6eea2dbf2f"
    "/data_generation/final_dataset/messages_and_QAs"
)
_MEM_ALPHA = f"{HUB}/datasets/YuWangX/Memalpha/resolve/main"
_MEMORY_AGENT_BENCH = (
    f"{HUB}/datasets/ai-hyz/MemoryAgentBench/resolve/7ea066982b140a19337e17e60d45d4076e042faf/data"
)
_MEMDAILY_KINDS = {
    "01_simple": ("events", "hybrid", "items", "places", "roles"),
    "02_conditional": ("events", "hybrid", "items", "places", "roles"),
    "03_comparative": ("events", "hybrid", "roles"),
    "04_aggregative": ("events", "hybrid", "roles"),
    "05_post_processing": ("events", "hybrid", "items", "places", "roles"),
    "06_noisy": ("events", "hybrid", "items", "places", "roles"),
}
_SKILLS = (
    (
        "Accurate_Retrieval",
        "56c3cd80fb6731a3e53cd1a6be3148f54df60ff2d290ee50e28f8acebf9655c1",
        20_024_386,
    ),
    (
        "Conflict_Resolution",
        "24d5c3f09ce0ce15625cb9f8a98f44f0d864ca6c94d7b4ad04eb697ca3a5ff45",
        1_491_588,
    ),
    (
        "Long_Range_Understanding",
        "5ab175461954db67770d4a4cb69e569b513ebb96aceb9ee79b57f67488bcd539",
        49_342_452,
    ),
    (
        "Test_Time_Learning",
        "5338753be48f925d03318eed66117286e3489025fabe050a547bd086cd7d79c0",
        3_947_476,
    ),
)

CATALOGUE: Final[Mapping[str, DataSet]] = {
    "locomo": DataSet(
        about="10 long conversations of two people, 1,986 questions (arXiv 2402.17753)",
        licence="CC BY-NC 4.0",
        home="https://github.com/snap-research/locomo",
        loader="load_locomo",
        files=(
            RemoteFile(
                "locomo10.json",
                f"{_LOCOMO}/locomo10.json",
                "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
                2_805_274,
            ),
        ),
    ),
    "longmemeval-oracle": DataSet(
        about="500 questions, each with only the sessions that answer it (arXiv 2410.10813)",
        licence="MIT",
        home=f"{HUB}/datasets/xiaowu0162/longmemeval-cleaned",
        loader="load_longmemeval",
        files=(
            RemoteFile(
                "longmemeval_oracle.json",
                f"{_LONGMEMEVAL}/longmemeval_oracle.json",
                "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c",
                15_388_478,
            ),
        ),
    ),
    "longmemeval-s": DataSet(
        about="the same 500 questions among about 48 sessions each, the cleaned edition",
        licence="MIT",
        home=f"{HUB}/datasets/xiaowu0162/longmemeval-cleaned",
        loader="load_longmemeval",
        files=(
            RemoteFile(
                "longmemeval_s_cleaned.json",
                f"{_LONGMEMEVAL}/longmemeval_s_cleaned.json",
                "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
                277_383_467,
            ),
        ),
    ),
    "memdaily": DataSet(
        about="3,000 Chinese message streams with a question each (MemSim, arXiv 2409.20163)",
        licence="none stated by its makers",
        home="https://github.com/nuster1128/MemSim",
        loader="load_memdaily",
        files=tuple(
            RemoteFile(f"{kind}_{about}.json", f"{_MEMDAILY}/{kind}_{about}.json")
            for kind, abouts in _MEMDAILY_KINDS.items()
            for about in abouts
        ),
    ),
    "mem-alpha": DataSet(
        about="training and test cases of memory construction (arXiv 2509.25911)",
        licence="none stated for the data that we know of (its code: Apache-2.0)",
        home=f"{HUB}/datasets/YuWangX/Memalpha",
        loader="load_mem_alpha",
        files=(
            RemoteFile("train.parquet", f"{_MEM_ALPHA}/train.parquet"),
            RemoteFile("test.parquet", f"{_MEM_ALPHA}/test.parquet"),
        ),
    ),
    "memory-agent-bench": DataSet(
        about="146 long contexts with many questions, four skills (arXiv 2507.05257)",
        licence="MIT",
        home=f"{HUB}/datasets/ai-hyz/MemoryAgentBench",
        loader="load_memory_agent_bench",
        files=tuple(
            RemoteFile(
                f"{skill}-00000-of-00001.parquet",
                f"{_MEMORY_AGENT_BENCH}/{skill}-00000-of-00001.parquet",
                sha256,
                size,
            )
            for skill, sha256, size in _SKILLS
        ),
    ),
}


def data_set(name: str) -> DataSet:
    """The data set of that name; raises BadInput that lists them."""
    if name not in CATALOGUE:
        raise BadInput(f"There is no data set {name!r}: choose from {', '.join(CATALOGUE)}.")
    return CATALOGUE[name]
