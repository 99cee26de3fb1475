"""Sampling G answers to each of B prompts, against the two obvious ways. One JSON line.

    python benchmarks/sampling.py --prompts 8 --group 8 --completion 32 --prompt 275
    python benchmarks/sampling.py --turns 3 --prompts 4 --group 1 --completion 1 --observation 56

Same weights with the same LoRA adapter, same prompts of random words, temperature 0.8, all answers
of full length, one thread, the sides alternating, medians over repeats. The peers have the model as
transformers loads it, ours as memograd does, which on AMD processors has faster linear layers
(`memograd.policy.loading`); `--same-linears` gives these to the peers as well. Peers:

    generate       transformers' `generate` on every prompt repeated G times
    prefill_once   the usual better way: each distinct prompt is prefilled once, its `DynamicCache`
                   is repeated G times, and all rows are decoded together with a growing cache

`tokens_per_second` counts drawn tokens and includes the prefill. `ratio_*` is a peer's time over
ours, `ratio_*_cpu` the same in CPU seconds. `--shortest` spreads the prompts' lengths evenly from
there up to `--prompt` (the peers then pad left, ours pads as it sees fit). Random words make
diverse answers, so next to nothing is gained here from answers that begin alike.

`--turns` plays episodes instead: `--prompts` openings with `--group` episodes each, and after every
action but the last an observation of `--observation` random words. An action has `--completion`
tokens on average (every that-many-th token of the vocabulary ends it). The sides are ours with what
turns leave behind (`kept`) and ours with every prompt run whole (`anew`), turn by turn on the same
prompts from the same seed. `prefilled_tokens` are the prompt tokens that were run. With
`--completion 1` both sides draw equally much; with longer actions a draw that falls the other way
by rounding changes the rest of its turn (`drawn_tokens`), and an action that is cut at eight times
the mean is not kept.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import cast

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, DynamicCache, PreTrainedModel

from memograd.config import LoraConfig
from memograd.policy.language_model import LanguageModel
from memograd.policy.loading import PACKAGED_MODEL, resolve_model
from memograd.policy.sampler import TokenDraw, sample_trees

TEMPERATURE = 0.8


def left_padded(prompts: list[list[int]], copies: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask [B * copies, P] of the prompts, each `copies` times in a row."""
    longest = max(len(prompt) for prompt in prompts)
    rows = [prompt for prompt in prompts for _ in range(copies)]
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return ids, mask


def generate(model: PreTrainedModel, prompts: list[list[int]], group: int, length: int) -> int:
    """transformers' `generate`; returns how many tokens were drawn."""
    ids, mask = left_padded(prompts, group)
    output = model.generate(
        input_ids=ids,
        attention_mask=mask,
        do_sample=True,
        temperature=TEMPERATURE,
        top_k=0,
        top_p=1.0,
        max_new_tokens=length,
        eos_token_id=None,
        pad_token_id=0,
    )
    return output[:, ids.shape[1] :].numel()


@torch.no_grad()
def prefill_once(model: PreTrainedModel, prompts: list[list[int]], group: int, length: int) -> int:
    """The plain loop over one repeated cache; returns how many tokens were drawn."""
    ids, mask = left_padded(prompts, 1)
    cache = DynamicCache()
    positions = (mask.cumsum(1) - 1).clamp_min(0)
    logits = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        logits_to_keep=1,
    ).logits[:, -1]
    cache.batch_repeat_interleave(group)
    logits, mask = logits.repeat_interleave(group, 0), mask.repeat_interleave(group, 0)
    position = mask.sum(1, keepdim=True) - 1
    drawn = []
    for step in range(length):
        logprobs = torch.log_softmax(logits.float() / TEMPERATURE, dim=-1)
        tokens = torch.multinomial(logprobs.exp(), 1)
        drawn.append((tokens, logprobs.gather(1, tokens)))
        if step < length - 1:
            position = position + 1
            mask = torch.cat([mask, torch.ones_like(tokens)], dim=1)
            logits = model(
                input_ids=tokens,
                attention_mask=mask,
                position_ids=position,
                past_key_values=cache,
                logits_to_keep=1,
            ).logits[:, -1]
    return torch.cat([tokens for tokens, _ in drawn], dim=1).numel()


def ours(model: PreTrainedModel, prompts: list[list[int]], group: int, length: int) -> int:
    """memograd's sampler; returns how many tokens were drawn."""
    groups = sample_trees(
        model,
        prompts,
        TokenDraw(TEMPERATURE, length, generator=torch.default_generator),
        num_generations=group,
    )
    return sum(len(logprobs) for sampled in groups for logprobs in sampled.logprobs)


SIDES: dict[str, Callable[[PreTrainedModel, list[list[int]], int, int], int]] = {
    "generate": generate,
    "prefill_once": prefill_once,
    "ours": ours,
}


def measure_turns(policy: LanguageModel, arguments: argparse.Namespace) -> dict[str, object]:
    """Both sides take every turn, one after the other; `kept`'s draws are what goes on."""
    openings = random_prompts(policy, [arguments.prompt] * arguments.prompts)
    ends = frozenset(range(0, policy.model.config.vocab_size, arguments.completion))
    LanguageModel.end_ids = property(lambda self: ends)  # type: ignore[assignment, method-assign]
    sides = ("kept", "anew")
    wall: dict[str, list[float]] = {name: [] for name in sides}
    cpu: dict[str, list[float]] = {name: [] for name in sides}
    # The play before the first repeat also makes the sampler's own check of longer prompts.
    for repeat in range(-1, arguments.repeats):
        samplers = {"kept": policy.in_turns(), "anew": policy}
        prompts, copies, words = list(map(tuple, openings)), arguments.group, random.Random(1)
        spent, spent_cpu = dict.fromkeys(sides, 0.0), dict.fromkeys(sides, 0.0)
        prefilled, drawn = dict.fromkeys(sides, 0), dict.fromkeys(sides, 0)
        for turn in range(arguments.turns):
            for name in sides if (repeat + turn) % 2 == 0 else sides[::-1]:
                started, used = time.perf_counter(), time.process_time()
                sampled = samplers[name].sample(
                    prompts,
                    num_generations=copies,
                    temperature=TEMPERATURE,
                    max_completion_length=8 * arguments.completion,
                    generator=torch.Generator().manual_seed(turn),
                )
                spent[name] += time.perf_counter() - started
                spent_cpu[name] += time.process_time() - used
                prefilled[name] += sum(len(one.tree.prompt) - one.reused_tokens for one in sampled)
                drawn[name] += sum(len(values) for one in sampled for values in one.logprobs)
                if name == "kept":
                    going_on = sampled
            rows = [
                (*one.tree.prompt, *one.tree.branch(row))
                for one in going_on
                for row in range(copies)
            ]
            prompts = [(*row, *words.choices(openings[0], k=arguments.observation)) for row in rows]
            copies = 1
        if repeat >= 0:
            for name in sides:
                wall[name].append(spent[name])
                cpu[name].append(spent_cpu[name])
    seconds = {name: statistics.median(times) for name, times in wall.items()}
    cpu_seconds = {name: statistics.median(times) for name, times in cpu.items()}
    return {
        "bench": "turns",
        **{name: getattr(arguments, name) for name in ("turns", "prompts", "group", "prompt")},
        **{name: getattr(arguments, name) for name in ("completion", "observation", "repeats")},
        "prefilled_tokens": prefilled,
        "drawn_tokens": drawn,
        "seconds": {name: round(took, 2) for name, took in seconds.items()},
        "cpu_seconds": {name: round(took, 2) for name, took in cpu_seconds.items()},
        "ratio": round(seconds["anew"] / seconds["kept"], 2),
        "ratio_cpu": round(cpu_seconds["anew"] / cpu_seconds["kept"], 2),
    }


def random_prompts(policy: LanguageModel, lengths: list[int]) -> list[list[int]]:
    """Prompts of random words, one token a word."""
    words = [token for token in range(1000, 9000) if policy.decode([token]).isalpha()]
    return [[words[i] for i in torch.randint(len(words), (length,)).tolist()] for length in lengths]


def plain_copy(policy: LanguageModel, name: str) -> PreTrainedModel:
    """The same model and adapter as transformers and peft load them."""
    base = AutoModelForCausalLM.from_pretrained(resolve_model(name), dtype=torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        policy.peft_model.save_pretrained(folder)
        model = PeftModel.from_pretrained(base, folder)
    return cast(PreTrainedModel, model.eval().get_base_model())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=275, help="tokens of the longest prompt")
    parser.add_argument("--shortest", type=int, help="tokens of the shortest prompt")
    parser.add_argument("--completion", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sides", nargs="+", choices=list(SIDES), default=list(SIDES))
    parser.add_argument("--model", default=PACKAGED_MODEL)
    parser.add_argument("--same-linears", action="store_true", help="our linears for the peers too")
    parser.add_argument("--turns", type=int, help="play episodes of so many turns instead")
    parser.add_argument("--observation", type=int, default=40, help="tokens of an observation")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    policy = LanguageModel.load(arguments.model, lora=LoraConfig(), device="cpu")
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.01)
    if arguments.turns is not None:
        print(json.dumps(measure_turns(policy, arguments)))
        return
    models = dict.fromkeys(arguments.sides, policy.model)
    if not arguments.same_linears:
        plain = plain_copy(policy, arguments.model)
        models |= {name: plain for name in arguments.sides if name != "ours"}
    spread = torch.linspace(
        arguments.shortest or arguments.prompt, arguments.prompt, arguments.prompts
    )
    prompts = random_prompts(policy, [int(length) for length in spread])
    wall: dict[str, list[float]] = {name: [] for name in arguments.sides}
    cpu: dict[str, list[float]] = {name: [] for name in arguments.sides}
    drawn = arguments.prompts * arguments.group * arguments.completion
    for repeat in range(arguments.repeats):
        order = arguments.sides if repeat % 2 == 0 else arguments.sides[::-1]
        for name in order:
            started, used = time.perf_counter(), time.process_time()
            count = SIDES[name](models[name], prompts, arguments.group, arguments.completion)
            wall[name].append(time.perf_counter() - started)
            cpu[name].append(time.process_time() - used)
            if count != drawn:
                raise SystemExit(f"{name} drew {count} tokens instead of {drawn}")
    seconds = {name: statistics.median(times) for name, times in wall.items()}
    cpu_seconds = {name: statistics.median(times) for name, times in cpu.items()}
    line: dict[str, object] = {
        "bench": "sampling",
        "prompts": arguments.prompts,
        "group": arguments.group,
        "prompt": arguments.prompt,
        "shortest": arguments.shortest or arguments.prompt,
        "completion": arguments.completion,
        "repeats": arguments.repeats,
        "same_linears": arguments.same_linears,
        "tokens_per_second": {name: round(drawn / took, 1) for name, took in seconds.items()},
        "seconds": {name: round(took, 2) for name, took in seconds.items()},
        "cpu_seconds": {name: round(took, 2) for name, took in cpu_seconds.items()},
    }
    if "ours" in seconds:
        for name in arguments.sides:
            if name != "ours":
                line[f"ratio_{name}"] = round(seconds[name] / seconds["ours"], 2)
                line[f"ratio_{name}_cpu"] = round(cpu_seconds[name] / cpu_seconds["ours"], 2)
    print(json.dumps(line))


if __name__ == "__main__":
    main()
