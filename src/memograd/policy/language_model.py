"""`LanguageModel`: a Hugging Face causal language model with a LoRA adapter, as a `Policy`.

The adapter (peft) is all that training moves; the reference policy of the KL term is the same
model with the adapter switched off, or with a frozen copy of the adapter that training began with:
there is no second model. Token ids are the interface:
`encode` applies the chat template once, `sample` returns the ids that were drawn, `logprobs`
scores these ids.

Invariant: right after loading, the policy and its reference give the same log-probabilities (a
fresh adapter adds zero).
"""

from __future__ import annotations

import logging
import platform
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

import torch
from jinja2 import TemplateError
from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, get_peft_model
from safetensors import SafetensorError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memograd.config import LoraConfig
from memograd.errors import BadInput
from memograd.policy.activation_checkpointing import checkpoint_layers
from memograd.policy.batching import batches_by_tokens
from memograd.policy.kept_prefixes import KeptPrefixes
from memograd.policy.loading import choose_device, load_causal_lm, load_tokenizer
from memograd.policy.protocol import SampledGroup
from memograd.policy.row_forward import row_logprobs
from memograd.policy.row_sampler import sample_rows
from memograd.policy.sampler import SampledTree, Stopped, never, sample_trees
from memograd.policy.sharding import Sharding
from memograd.policy.token_logprobs import BranchLogprobs
from memograd.policy.token_texts import ends_with_one_of, token_texts
from memograd.policy.tree_forward import tree_logprobs
from memograd.policy.turns import TURN_TOKENS, TurnSampler
from memograd.policy.value_head import FILE as VALUE_HEAD_FILE
from memograd.policy.value_head import ValueHead
from memograd.policy.verify import (
    TOLERANCES,
    Agreement,
    compare_forwards,
    length_of,
    sampling_error,
    small_subtrees,
)
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import Message

logger = logging.getLogger(__name__)

LEARN_TOKENS = {"cpu": 1024, "cuda": 32_768, "mps": 4096}
"""About how many tokens one forward with gradients takes at once, by device: on a CPU padding costs
more than batching saves."""

TRAINED = "default"
"""Name of the adapter that training moves: peft's own, which it saves without a subfolder."""
REFERENCE = "reference"
"""Name, and subfolder of a checkpoint, of the frozen adapter that training began with."""

_FORWARDS = {"tree": tree_logprobs, "rows": row_logprobs}


@contextmanager
def _quiet_peft() -> Iterator[None]:
    """Without the notice that peft reads an attribute which transformers has renamed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing")
        yield


class LanguageModel:
    """A causal language model with a LoRA adapter; fulfils `memograd.policy.Policy`.

    `peft_model` is the model with its adapter, `model` the causal language model inside (its layers
    carry the adapter), for whoever needs the libraries' own objects. `stop` are texts that end an
    answer as an end token does: the token that completes one is the answer's last.
    """

    def __init__(
        self,
        peft_model: PeftModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        forward: str = "tree",
        waits_for: torch.device | None = None,
    ) -> None:
        """`waits_for` is where weights that are still in the CPU's memory go once `shard` is
        called; nothing may be computed before."""
        self.name = name
        self.tokenizer = tokenizer
        self.forward = forward
        self.peft_model = peft_model.eval()
        self.value_head: ValueHead | None = None
        self.stop: Sequence[str] = ()
        self._sharding: Sharding | None = None
        self._waits_for = waits_for
        self._checked_length = 0
        self.model: PreTrainedModel = cast(PreTrainedModel, peft_model.get_base_model())

    @classmethod
    def load(
        cls,
        model: str,
        *,
        lora: LoraConfig,
        device: str = "auto",
        seed: int = 0,
        forward: str = "tree",
        to_cut: bool = False,
    ) -> LanguageModel:
        """Open `model` with a fresh adapter whose random half is drawn from `seed`.

        `to_cut`: `shard` will be called next, and until then no weight is on the device.
        """
        tokenizer = load_tokenizer(model)
        chosen = choose_device(device)
        base = load_causal_lm(model, chosen, to_cut=to_cut)
        adapter = PeftLoraConfig(
            r=lora.r,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules=list(lora.target_modules),
            task_type="CAUSAL_LM",
        )
        with torch.random.fork_rng(devices=[]), _quiet_peft():
            torch.manual_seed(seed)
            try:
                peft_model = get_peft_model(base, adapter)
            except ValueError as error:
                modules = ", ".join(lora.target_modules)
                raise BadInput(
                    f"model={model} has none of the layers lora.target_modules={modules}"
                ) from error
        waits_for = chosen if to_cut else None
        return cls(peft_model, tokenizer, name=model, forward=forward, waits_for=waits_for)

    @classmethod
    def load_adapter(
        cls,
        model: str,
        folder: Path,
        *,
        reference: Path | Literal["saved"] | None = "saved",
        device: str = "auto",
        forward: str = "tree",
        to_cut: bool = False,
    ) -> LanguageModel:
        """Open `model` with the adapter that `save` wrote into `folder`, ready to train on.

        The KL term holds the policy near the adapter in the folder `reference`, or near the model
        alone if that is None. Unless given, it is as it was when `save` wrote the folder. `to_cut`
        is as in `load`.
        """
        if not (folder / "adapter_config.json").is_file():
            raise BadInput(f"{folder} holds no adapter (adapter_config.json is missing)")
        chosen = choose_device(device)
        base = load_causal_lm(model, chosen, to_cut=to_cut)
        with _quiet_peft():
            peft_model = PeftModel.from_pretrained(base, folder, is_trainable=True)
            if reference == "saved":
                reference = folder / REFERENCE if (folder / REFERENCE).is_dir() else None
            if reference is not None:
                peft_model.load_adapter(str(reference), REFERENCE, is_trainable=False)
        return cls(
            peft_model,
            load_tokenizer(model),
            name=model,
            forward=forward,
            waits_for=chosen if to_cut else None,
        )

    def checkpoint_activations(self) -> None:
        """Keep no activations inside layers for the backward pass: memory for time."""
        checkpoint_layers(self.model)

    def shard(self) -> Callable[[], None]:
        """Cut the frozen weights of the layers among the ranks that are joined (FSDP2).

        From here on all ranks must compute together: returns what a rank calls when it has nothing
        to do, for `World.catch_up`. Raises `BadInput` unless tokens are computed over trees.
        """
        self._check_shardable()
        adapter = [weight for name, weight in self.model.named_parameters() if "lora_" in name]
        self._sharding = Sharding(self.model, adapter=adapter, device=self.device)
        self._waits_for = None
        return self._sharding.follow

    def add_value_head(self, folder: Path | None) -> None:
        """Let `logprobs` give values too; the head is that of the checkpoint `folder`, or fresh if
        there is none in it."""
        hidden_size = self.model.config.get_text_config().hidden_size
        self.value_head = ValueHead(hidden_size, self.device)
        if folder is not None and (folder / VALUE_HEAD_FILE).is_file():
            self.value_head.load(folder)

    @property
    def device(self) -> torch.device:
        """Where the weights are, or go once `shard` is called."""
        return self._waits_for or self.model.device

    def environment(self) -> dict[str, str]:
        """What numbers may depend on beside the settings: device, number type, versions."""
        packages = ("memograd", "torch", "transformers", "peft", "tokenizers")
        return {
            "device": str(self.device),
            "dtype": str(self.model.dtype),
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        }

    @property
    def context_length(self) -> int:
        """The longest sequence the model was made for, in tokens; no limit if it names none."""
        text_config = self.model.config.get_text_config()
        return int(getattr(text_config, "max_position_embeddings", None) or sys.maxsize)

    @property
    def end_ids(self) -> frozenset[int]:
        """Token ids that end an answer."""
        declared = getattr(self.model.generation_config, "eos_token_id", None)
        extra = declared if isinstance(declared, list) else [declared]
        candidates: list[Any] = [self.tokenizer.eos_token_id, *extra]
        return frozenset(int(token) for token in candidates if token is not None)

    def count_tokens(self, text: str) -> int:
        """Length of `text` in this model's tokens, without special ones."""
        return len(self.tokenizer.encode(text, add_special_tokens=False))

    def encode(self, prompt: str | Sequence[Message]) -> list[int]:
        """Apply the chat template once: the ids of the chat up to where the answer begins.

        A text has no template: its ids, with the special tokens that the tokenizer begins with.
        """
        if isinstance(prompt, str):
            return list(cast(list[int], self.tokenizer(prompt)["input_ids"]))
        if not self.tokenizer.chat_template:
            raise BadInput(
                f"model={self.name} has no chat template, so a conversation cannot be put to it; "
                "use an instruction-tuned model, add a chat_template to its tokenizer, or give it "
                "texts"
            )
        chat: list[dict[str, Any]] = [dict(message) for message in prompt]
        try:
            ids = self.tokenizer.apply_chat_template(
                chat, add_generation_prompt=True, tokenize=True, return_dict=False
            )
        except TemplateError as error:
            raise BadInput(
                f"the chat template of {self.name} refuses a system message followed by a user "
                f"message ({error}); use a model whose template takes them"
            ) from error
        return list(cast(list[int], ids))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of an answer, without special tokens and surrounding white space."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """The text that each token adds, special tokens included."""
        return token_texts(lambda part: str(self.tokenizer.decode(part)), ids)

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        num_generations: int | Sequence[int],
        temperature: float,
        max_completion_length: int,
        generator: torch.Generator | None = None,
        kept: KeptPrefixes | None = None,
    ) -> list[SampledGroup]:
        """Draw answers; see `memograd.policy.sampler`.

        `kept` is for prompts that go on from earlier answers under the same weights (`in_turns`);
        row by row it is of no use.

        When a prompt with its answer is longer than any before, drawn log-probabilities are checked
        against the row forward; where they differ, it warns, draws again row by row, and stays with
        rows.

        Raises `BadInput` for a prompt that leaves no room for an answer in the model's context.
        """
        for index, prompt in enumerate(prompts):
            if len(prompt) + max_completion_length > self.context_length:
                raise BadInput(
                    f"prompt {index} has {len(prompt)} tokens; with {max_completion_length} for "
                    f"the answer it exceeds the {self.context_length} tokens of {self.name}; "
                    "lower memory.token_budget, memory.top_k or max_completion_length"
                )
        self._set_training(False)
        settings: dict[str, Any] = {
            "num_generations": num_generations,
            "temperature": temperature,
            "max_completion_length": max_completion_length,
            "end_ids": self.end_ids,
            "generator": generator,
            "stopped": self._stopped(),
        }
        sampled: list[SampledTree] | None = None
        if self.forward == "tree":
            sampled = self._sample_over_trees(prompts, settings, kept)
        if sampled is None:
            if kept is not None:
                kept.clear()
            sampled = sample_rows(self.model, prompts, **settings)
        return [
            SampledGroup(
                tree=group.tree,
                logprobs=group.logprobs,
                texts=tuple(
                    self.decode(group.tree.branch(row)) for row in range(len(group.logprobs))
                ),
                stop_reasons=group.stop_reasons,
                reused_tokens=group.reused_tokens,
            )
            for group in sampled
        ]

    def _stopped(self) -> Stopped:
        if not self.stop:
            return never
        return ends_with_one_of(lambda ids: str(self.tokenizer.decode(list(ids))), self.stop)

    def in_turns(self, tokens: int | None = None) -> TurnSampler:
        """What draws the actions of one batch of episodes, keeping keys and values of up to so many
        tokens between their turns (None: as many as suits the device); see `memograd.policy.turns`.
        """
        return TurnSampler(self, TURN_TOKENS[self.device.type] if tokens is None else tokens)

    def microbatches(self, trees: Sequence[TokenTree]) -> list[list[int]]:
        """Cut `trees` into pieces of similar length that fit the device; indices into `trees`."""
        if self.forward == "tree":
            lengths = [tree.tree_tokens for tree in trees]
        else:
            lengths = [tree.rows_tokens for tree in trees]
        return batches_by_tokens(lengths, LEARN_TOKENS[self.device.type])

    def logprobs(
        self, trees: Sequence[TokenTree], *, temperature: float, entropy_gradient: bool = False
    ) -> BranchLogprobs:
        """Scores of all branches with gradients, over trees or, if `forward` says so, by rows.

        Dropout is for gradients: without them the scores are those of the policy that samples.
        """
        self._set_training(torch.is_grad_enabled())
        sharding = self._sharding if torch.is_grad_enabled() else None
        with sharding.training() if sharding else nullcontext():
            return _FORWARDS[self.forward](
                self.model,
                trees,
                temperature=temperature,
                entropy_gradient=entropy_gradient,
                value_head=self.value_head,
            )

    @torch.no_grad()
    def reference_logprobs(
        self, trees: Sequence[TokenTree], *, temperature: float
    ) -> BranchLogprobs:
        """Scores under what training began with: the model, or the adapter of an earlier run."""
        self._set_training(False)
        with self.at_start():
            return _FORWARDS[self.forward](self.model, trees, temperature=temperature)

    @contextmanager
    def at_start(self) -> Iterator[None]:
        """Within this block the policy is what training began with: the model, or the adapter of
        an earlier run."""
        with self._reference() if REFERENCE in self.peft_model.peft_config else self.untrained():
            yield

    @contextmanager
    def untrained(self) -> Iterator[None]:
        """Within this block the adapter is off: the policy is the model it was trained from."""
        with self.peft_model.disable_adapter():
            yield

    @contextmanager
    def _reference(self) -> Iterator[None]:
        """Within this block the frozen adapter that training began with is the active one."""
        self.peft_model.set_adapter(REFERENCE)
        try:
            yield
        finally:
            self.peft_model.set_adapter(TRAINED)

    def verify(self, trees: Sequence[TokenTree], *, temperature: float) -> Agreement | None:
        """Compare the tree forward with the plain one on parts of `trees`; fall back if they
        differ.

        Returns what was measured, or None where rows are used anyway. A fallback is a warning.
        """
        if self.forward != "tree":
            return None
        self._set_training(False)
        agreement = compare_forwards(
            self.model, self.parameters(), small_subtrees(trees), temperature=temperature
        )
        if not agreement.holds:
            self._use_rows(
                f"log-prob difference {agreement.logprob_error:.2g}, relative gradient error "
                f"{agreement.gradient_error:.2g}"
            )
        return agreement

    def prepare_to_sample(self) -> None:
        """For whoever samples from `model` itself: switch off what only training has (dropout)."""
        self._set_training(False)

    def _set_training(self, training: bool) -> None:
        """Switch the adapter's dropout; the base model's stays off, as when sampling."""
        for name, module in self.peft_model.named_modules():
            if "lora_dropout" in name:
                module.train(training)

    def _sample_over_trees(
        self,
        prompts: Sequence[Sequence[int]],
        settings: dict[str, Any],
        kept: KeptPrefixes | None,
    ) -> list[SampledTree] | None:
        """Draw over token trees; None, with a warning and `forward` set, if that is not right."""
        sampled = sample_trees(self.model, prompts, kept=kept, **settings)
        longest = max(length_of(group.tree) for group in sampled)
        if longest > self._checked_length:
            self._checked_length = longest
            temperature = settings["temperature"] or 1.0
            error_nats = sampling_error(self.model, sampled, temperature=temperature)
            if not error_nats <= TOLERANCES[self.model.dtype][0]:
                self._use_rows(f"sampled log-probabilities differ by {error_nats:.2g}")
                return None
        return sampled

    def _use_rows(self, reason: str) -> None:
        logger.warning(
            "computing over token trees does not agree with the plain computation on %s (%s): this "
            "run uses forward=rows, which is slower and right",
            self.name,
            reason,
        )
        self.forward = "rows"
        if self._sharding is not None:
            self._check_shardable()

    def _check_shardable(self) -> None:
        if self.forward != "tree":
            raise BadInput(
                f"{self.name} is computed row by row here, which shard=fsdp2 cannot do; use "
                "shard=off"
            )

    def parameters(self) -> list[torch.nn.Parameter]:
        """The weights of the adapter and, if there is one, the value head, in a stable order."""
        adapter = [p for p in self.peft_model.parameters() if p.requires_grad]
        return adapter + ([] if self.value_head is None else list(self.value_head.parameters()))

    def save(self, folder: Path) -> None:
        """Write adapter (safetensors), the one of the reference if there is one, and tokenizer,
        which `load_adapter` reads, and the value head, which `add_value_head` does."""
        adapters = [name for name in (TRAINED, REFERENCE) if name in self.peft_model.peft_config]
        try:
            self.peft_model.save_pretrained(
                str(folder), selected_adapters=adapters, save_embedding_layers=False
            )
        except SafetensorError as error:
            raise OSError(f"the adapter: {error}") from error
        if self.value_head is not None:
            self.value_head.save(folder)
        self.tokenizer.save_pretrained(folder)
