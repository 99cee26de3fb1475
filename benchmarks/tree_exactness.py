"""How exact is the tree forward on the real SmolLM2? One JSON line a case.

    python benchmarks/tree_exactness.py [--model FOLDER_OR_ID]

Each case compares log-probabilities and LoRA gradients of both tree forwards (one packed row, two
passes) with the plain row-by-row forward, in fp32, with an adapter whose weights are all non-zero.
The goals are 5e-5 nats (`max_logprob_error`) and 2e-5 (`gradient_error`, the relative L2 error).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import torch

from memograd.config import LoraConfig
from memograd.policy.forward_choice import compare_forwards
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import PACKAGED_MODEL
from memograd.policy.tree_forward import packed_logprobs, tree_logprobs
from memograd.rollout import TokenTree

Ids = Callable[[int], list[int]]


def cases(ids: Ids) -> dict[str, list[TokenTree]]:
    """Named batches of trees; `ids(n)` gives n random token ids."""
    start = ids(6)
    tree = TokenTree.from_branches
    return {
        "one group, P=256 G=8 C=32": [tree(ids(256), [ids(32) for _ in range(8)])],
        "ragged prompts and completions": [
            tree(ids(length), [ids(size) for size in (1, 7, 19, 32)]) for length in (17, 130, 61)
        ],
        "groups of one": [tree(ids(length), [ids(9)]) for length in (40, 90)],
        "empty completions beside others": [tree(ids(50), [[], ids(5), []]), tree(ids(20), [[]])],
        "shared beginnings and equal answers": [
            tree(ids(80), [start, start, start[:3], start[:4] + ids(3), ids(6)])
        ],
        "a prompt of one token": [tree(ids(1), [ids(4), ids(2)])],
    }


def main() -> None:
    """Run all cases and print their errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=PACKAGED_MODEL)
    model = parser.parse_args().model
    torch.set_num_threads(1)
    policy = LanguageModel.load(model, lora=LoraConfig(), device="cpu")
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.02)
    vocabulary = len(policy.tokenizer)

    def ids(count: int) -> list[int]:
        return torch.randint(10, vocabulary, (count,), generator=generator).tolist()

    for name, trees in cases(ids).items():
        for forward, compute in {"packed": packed_logprobs, "tree": tree_logprobs}.items():
            agreement = compare_forwards(
                policy.model, policy.parameters(), trees, temperature=0.8, forward=compute
            )
            print(
                json.dumps(
                    {
                        "bench": "tree_exactness",
                        "case": name,
                        "forward": forward,
                        "model": model,
                        "max_logprob_error": agreement.logprob_error,
                        "gradient_error": agreement.gradient_error,
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
