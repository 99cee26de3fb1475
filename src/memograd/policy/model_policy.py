"""`ModelPolicy`: a Hugging Face causal language model as a `Policy`, whatever training moves of it.

`language_model` has the policy of which an adapter is trained, `full_model` the one that is trained
whole. Token ids are the interface: `encode` applies the chat template once, `sample` returns the
ids that were drawn, `logprobs` scores these ids. `model_tokens` has the tokens, `versions` whose
they are, `memory_model` the size of micro-batches; here are sampling, scoring and the choice of how
both are computed.

Invariant: however trees are scored, the numbers are those of the plain computation, or it is used.
"""

from __future__ import annotations

import logging
import platform
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib.metadata import version
from pathlib import Path

import torch
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memograd.errors import BadInput
from memograd.policy.forward_choice import (
    TOLERANCES,
    Agreement,
    LayerCosts,
    cheapest,
    compare_forwards,
    cut_branches,
    length_of,
    predicted_costs,
    sampling_error,
    small_subtrees,
)
from memograd.policy.kv_cache import TURN_TOKENS, KeptPrefixes, TurnSampler
from memograd.policy.memory_model import MemoryBudget, PlannedMemory
from memograd.policy.model_tokens import ModelTokens
from memograd.policy.prefill import batches_by_sum, batches_by_tokens
from memograd.policy.protocol import Published, SampledGroup
from memograd.policy.remote.adapters import ServedVersion
from memograd.policy.remote.probe import explain
from memograd.policy.remote.sampler import PinnedSampler, RemoteSampler, Speaker
from memograd.policy.rows import row_logprobs, sample_rows
from memograd.policy.sampler import SampledTree, TokenDraw, sample_trees
from memograd.policy.sharding import Sharding
from memograd.policy.token_logprobs import VALUE_HEAD_FILE, BranchLogprobs, ValueHead
from memograd.policy.tree_attention import use_tree_attention
from memograd.policy.tree_forward import packed_logprobs, tree_logprobs
from memograd.rollout.token_tree import TokenTree
from memograd.rollout.types import VersionSpan, one_span

logger = logging.getLogger(__name__)

_FORWARDS = {"packed": packed_logprobs, "tree": tree_logprobs, "rows": row_logprobs}


class PublishedVersions:
    """The part of a `ModelPolicy` that says whose tokens are drawn; `remote` draws them, if there
    is one. What is drawn carries the version that was published last, wherever it is drawn."""

    remote: RemoteSampler | None
    speaker: Speaker
    _version: int

    def _spans(self, tokens: int) -> tuple[VersionSpan, ...]:
        return one_span(self._version, tokens) if self.speaker == "trained" else ()

    @property
    def version(self) -> int:
        """The version of the weights that draw; 0 before training gave them one."""
        return self._version if self.remote is None else self.remote.version

    def publish(self, version: int) -> Published:
        """From here on the weights as they are now draw, under this version."""
        return self.publisher(version)()

    def publisher(self, version: int) -> Callable[[], Published]:
        """What publishes the weights as they are now; every process asks for it, one calls it."""
        remote = None if self.remote is None else self.remote.publisher(version)

        def publish() -> Published:
            self._version = version
            return Published(version) if remote is None else remote()

        return publish

    def follow(self, published: Published) -> None:
        """Draw from what another process published; the weights here are the same."""
        self._version = published.version
        if self.remote is not None:
            self.remote.follow(published)

    def rest(self) -> None:
        """Nothing is drawn until the learner has moved: servers on its device may let go of it."""
        if self.remote is not None:
            self.remote.rest()


class ModelPolicy(ModelTokens, PublishedVersions, PlannedMemory):
    """A causal language model that draws and scores; fulfils `memograd.policy.Policy`.

    `stop` are texts that end an answer as an end token does: the token that completes one is the
    answer's last. `remote` draws in this process's place, if there is one; `speaker` is who
    answers there.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        forward: str,
        waits_for: torch.device | None,
    ) -> None:
        """`forward` is how trees are scored (`memograd.policy.forward_choice`): the cheapest of all
        (`auto`), or one of them; with `rows` sampling goes row by row too. `waits_for` is where
        weights that are still in the CPU's memory go once `shard` is called; nothing may be
        computed before."""
        self.name = name
        self.tokenizer = tokenizer
        self.forward = forward
        self.model = model
        self.value_head: ValueHead | None = None
        self.stop: Sequence[str] = ()
        self.remote: RemoteSampler | None = None
        self.speaker: Speaker = "trained"
        self._version = 0
        self._sharding: Sharding | None = None
        self._waits_for = waits_for
        self._checked_length = 0
        self.checkpointing = False
        self.budget: MemoryBudget | None = None
        self._unread_peak: tuple[int, int] | None = None
        self._packs = forward != "rows" and use_tree_attention(self.model)
        if forward == "packed" and not self._packs:
            raise BadInput(
                f"the attention of {name} cannot be exchanged, so forward=packed cannot compute it;"
                " use forward=auto"
            )
        self._layer_costs = LayerCosts.of(self.model)

    @abstractmethod
    def _moved(self) -> list[torch.nn.Parameter]:
        """The weights of the model that training moves, in a stable order."""

    @abstractmethod
    def _set_training(self, training: bool) -> None:
        """Switch what only training has (dropout)."""

    @abstractmethod
    def shard(self) -> Callable[[], None]:
        """Cut the weights of the layers among the ranks that are joined (FSDP2).

        From here on all ranks must compute together: returns what a rank calls when it has nothing
        to do, for `World.catch_up`. Raises `BadInput` unless tokens are computed over trees.
        """

    @property
    @abstractmethod
    def has_reference(self) -> bool:
        """Whether `reference_logprobs` can be asked."""

    @abstractmethod
    def reference_logprobs(
        self, trees: Sequence[TokenTree], *, temperature: float
    ) -> BranchLogprobs:
        """Scores under what training began with."""

    @abstractmethod
    def at_start(self) -> AbstractContextManager[None]:
        """Within this block the policy is what training began with."""

    @abstractmethod
    def untrained(self) -> AbstractContextManager[None]:
        """Within this block the policy is the model that it was trained from."""

    @abstractmethod
    def prepared(self, speaker: Speaker, *, keep: bool) -> Callable[[int, str], ServedVersion]:
        """What makes a version for servers, as `memograd.policy.remote.sampler.Learner` says."""

    @abstractmethod
    def followed(self, published: Published, *, keep: bool) -> ServedVersion:
        """The version that another process made of these weights."""

    @abstractmethod
    def saver(self) -> Callable[[Path], None]:
        """What writes the policy into a folder; every rank must ask for it, one calls it."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what was trained, the value head, if there is one, and the tokenizer."""

    def _shard(
        self,
        *,
        whole: Sequence[torch.nn.Parameter],
        reference: PreTrainedModel | None = None,
    ) -> Callable[[], None]:
        self._check_shardable()
        if self.forward == "auto":
            # All ranks must pass the body equally often, whatever trees each has.
            self.forward = self._shared_forward()
        model, forward = self.model, _FORWARDS[self.forward]
        self._sharding = Sharding(
            model,
            whole=whole,
            device=self.device,
            forward=lambda trees: forward(model, trees, temperature=1.0),
            last_layer=self.forward == "packed",
            reference=reference,
        )
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

    @property
    def dtype(self) -> torch.dtype:
        """The number type that the model computes in."""
        return self.model.dtype

    def environment(self) -> dict[str, str]:
        """What numbers may depend on beside the settings: device, number type, versions."""
        packages = ("memograd", "torch", "transformers", "peft", "tokenizers")
        return {
            "device": str(self.device),
            "dtype": str(self.dtype),
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        }

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
        """Draw answers; see `memograd.policy.sampler`, or, where servers draw,
        `memograd.policy.remote`.

        `kept` is for prompts that go on from earlier answers under the same weights (`in_turns`);
        row by row it is of no use.

        When a prompt with its answer is longer than any before, drawn log-probabilities are checked
        against the row forward; where they differ, it warns, draws again row by row, and stays with
        rows.

        Raises `BadInput` for a prompt that leaves no room for an answer in the model's context.
        """
        if self.remote is not None:
            return self.remote.sample(
                prompts,
                num_generations=num_generations,
                temperature=temperature,
                max_completion_length=max_completion_length,
                generator=generator,
            )
        for index, prompt in enumerate(prompts):
            if len(prompt) + max_completion_length > self.context_length:
                raise BadInput(
                    f"prompt {index} has {len(prompt)} tokens; with {max_completion_length} for "
                    f"the answer it exceeds the {self.context_length} tokens of {self.name}; "
                    "shorten the prompt, or lower max_completion_length"
                )
        self._set_training(False)
        draw = TokenDraw(
            temperature, max_completion_length, self.end_ids, generator, self._stopped()
        )
        sampled: list[SampledTree] | None = None
        if self.forward != "rows":
            sampled = self._sample_over_trees(prompts, draw, num_generations, kept)
        if sampled is None:
            if kept is not None:
                kept.clear()
            sampled = sample_rows(self.model, prompts, draw, num_generations=num_generations)
        return [
            SampledGroup(
                tree=group.tree,
                logprobs=group.logprobs,
                texts=tuple(
                    self.decode(group.tree.branch(row)) for row in range(len(group.logprobs))
                ),
                stop_reasons=group.stop_reasons,
                reused_tokens=group.reused_tokens,
                versions=tuple(self._spans(len(drawn)) for drawn in group.logprobs),
            )
            for group in sampled
        ]

    def why_gap(self, prompt: Sequence[int], *, temperature: float, limit: float) -> str:
        """Why servers' log-probabilities differ from the learner's by more than `limit`."""
        if self.remote is None:
            return "this process drew them itself"
        cause = explain(self, self.remote, prompt, temperature=temperature, limit=limit)
        return f"the server: {cause}"

    @torch.no_grad()
    def logprobs_of(
        self, version: int, trees: Sequence[TokenTree], *, temperature: float
    ) -> BranchLogprobs | None:
        """Scores under an older version, without gradients; None if its weights are not kept."""
        weights = None if self.remote is None else self.remote.weights_of(version)
        if weights is None:
            return None
        with self.with_weights(weights):
            return self.logprobs(trees, temperature=temperature)

    def probed(self) -> dict[str, torch.Tensor]:
        """Copies of the weights, by name, that a server is tried with other values of."""
        return self._copies()

    def _copies(self) -> dict[str, torch.Tensor]:
        """Copies on the CPU of all weights that training moves, by name."""
        return {
            name: weight.detach().to("cpu", copy=True)
            for name, weight in self.model.named_parameters()
            if weight.requires_grad
        }

    @contextmanager
    def with_weights(self, weights: Mapping[str, torch.Tensor]) -> Iterator[None]:
        """Within this block the weights of these names are these; the others stay."""
        own = {name: self.model.get_parameter(name) for name in weights}
        kept = {name: weight.detach().clone() for name, weight in own.items()}

        def put(new: Mapping[str, torch.Tensor]) -> None:
            with torch.no_grad():
                for name, weight in own.items():
                    weight.copy_(new[name])

        put(weights)
        try:
            yield
        finally:
            put(kept)

    def in_turns(self, tokens: int | None = None) -> TurnSampler | PinnedSampler:
        """What draws the actions of one batch of episodes, keeping keys and values of up to so many
        tokens between their turns (None: as many as suits the device); see `TurnSampler`. Servers
        keep them by themselves.
        """
        if self.remote is not None:
            return PinnedSampler(self.remote)
        return TurnSampler(self, TURN_TOKENS[self.device.type] if tokens is None else tokens)

    def microbatches(self, trees: Sequence[TokenTree]) -> list[list[int]]:
        """Cut `trees` into pieces of similar length that fit the device; indices into `trees`."""
        limit = self.usual_tokens()
        if self.forward == "rows":
            return batches_by_tokens([tree.rows_tokens for tree in trees], limit)
        lengths = [tree.tree_tokens for tree in trees]
        return (batches_by_tokens if self.forward == "tree" else batches_by_sum)(lengths, limit)

    def cut(self, tree: TokenTree) -> list[list[int]]:
        """The branches of `tree`, in order, in parts that fit the device as trees of their own."""
        return cut_branches(tree, self._room())

    def _forward_for(self, trees: Sequence[TokenTree]) -> Callable[..., BranchLogprobs]:
        """What scores these trees: as told, or the cheapest."""
        if self.forward != "auto":
            return _FORWARDS[self.forward]
        costs = predicted_costs(trees, self._layer_costs, self.device)
        return _FORWARDS[cheapest(costs, (self._shared_forward(), "rows"))]

    def _shared_forward(self) -> str:
        """How shared tokens are computed once, unless the settings name it: as one row, where the
        model's attention can be exchanged."""
        return "packed" if self._packs else "tree"

    def logprobs(
        self, trees: Sequence[TokenTree], *, temperature: float, entropy_gradient: bool = False
    ) -> BranchLogprobs:
        """Scores of all branches with gradients, over trees or, if `forward` says so, by rows.

        Dropout is for gradients: without them the scores are those of the policy that samples.
        """
        self._set_training(torch.is_grad_enabled())
        sharding = self._sharding if torch.is_grad_enabled() else None
        measured = self._measured(trees) if torch.is_grad_enabled() else nullcontext()
        with sharding.training() if sharding else nullcontext(), measured:
            return self._forward_for(trees)(
                self.model,
                trees,
                temperature=temperature,
                entropy_gradient=entropy_gradient,
                value_head=self.value_head,
            )

    def verify(self, trees: Sequence[TokenTree], *, temperature: float) -> Agreement | None:
        """Compare the tree forward with the plain one on parts of `trees`; fall back if they
        differ: from the packed row to two passes, and from these to rows.

        Returns what was measured, or None where rows are used anyway. A fallback is a warning.
        """
        if self.forward == "rows":
            return None
        self._set_training(False)
        compare = partial(
            compare_forwards,
            self.model,
            # Of weights that FSDP2 has cut the gradient goes elsewhere; those that are whole stand
            # before and behind all layers.
            [one for one in self.parameters() if not isinstance(one, DTensor)],
            small_subtrees(trees),
            temperature=temperature,
        )
        shared = self._shared_forward() if self.forward == "auto" else self.forward
        agreement = compare(forward=_FORWARDS[shared])
        if not agreement.holds and self.forward == "auto" and shared == "packed":
            packed, agreement = agreement, compare(forward=tree_logprobs)
            if agreement.holds:
                self.forward = "tree"
                logger.warning(
                    "one packed row does not agree with the plain computation on %s (log-prob "
                    "difference %.2g): this run uses forward=tree",
                    self.name,
                    packed.logprob_error,
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

    def _sample_over_trees(
        self,
        prompts: Sequence[Sequence[int]],
        draw: TokenDraw,
        num_generations: int | Sequence[int],
        kept: KeptPrefixes | None,
    ) -> list[SampledTree] | None:
        """Draw over token trees; None, with a warning and `forward` set, if that is not right."""
        sampled = sample_trees(
            self.model, prompts, draw, num_generations=num_generations, kept=kept
        )
        longest = max(length_of(group.tree) for group in sampled)
        if longest > self._checked_length:
            self._checked_length = longest
            temperature = draw.temperature or 1.0
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
        if self.forward == "rows":
            raise BadInput(
                f"{self.name} is computed row by row here, which shard=fsdp2 cannot do; use "
                "shard=off"
            )

    def parameters(self) -> list[torch.nn.Parameter]:
        """The weights that are trained and, if there is one, the value head, in a stable order."""
        return self._moved() + (
            [] if self.value_head is None else list(self.value_head.parameters())
        )

    def weights_version(self) -> tuple[int, ...]:
        """Differs from what it was if a weight that is trained has moved since."""
        return tuple(weight._version for weight in self.parameters())
