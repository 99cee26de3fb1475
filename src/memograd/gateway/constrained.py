"""Answers held to grammars by llguidance, which says after each token what may come next.

Invariant: a grammar that it cannot read is a refusal before the call has a number, with its reason;
grammars are read once and forked for every answer.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, cast

from memograd.errors import MemogradError
from memograd.gateway.protocol import Refused
from memograd.rollout.allowed_tokens import TokenMask

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer
    from transformers import PreTrainedTokenizerFast

    from memograd.policy.language_model import LanguageModel

READ: Final = 64
"""Grammars that are held."""


class Grammars:
    """The grammars of a policy's answers."""

    def __init__(self, policy: LanguageModel) -> None:
        self._policy = policy
        self._tokenizer: LLTokenizer | None = None
        self._read: OrderedDict[str, LLMatcher] = OrderedDict()

    def constraint(self, grammar: str, param: str) -> GrammarConstraint:
        """An answer's beginning in the grammar; `Refused`, naming `param`, if it cannot be read."""
        matcher = self._read.get(grammar)
        if matcher is None:
            matcher = self._matcher(grammar, param)
            self._read[grammar] = matcher
            if len(self._read) > READ:
                self._read.popitem(last=False)
        self._read.move_to_end(grammar)
        return GrammarConstraint(matcher.deep_copy(), self._policy.end_ids)

    def _matcher(self, grammar: str, param: str) -> LLMatcher:
        try:
            from llguidance import LLMatcher
            from llguidance.hf import from_tokenizer
        except ImportError:
            raise Refused(
                400,
                f"{param}: holding the local model to a grammar needs llguidance: "
                "pip install 'memograd[grammar]'.",
                param=param,
            ) from None
        if self._tokenizer is None:
            weight = self._policy.model.get_output_embeddings().weight
            self._tokenizer = from_tokenizer(
                cast("PreTrainedTokenizerFast", self._policy.tokenizer),
                n_vocab=int(weight.shape[0]),
                eos_token=sorted(self._policy.end_ids),
            )
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            reason = matcher.get_error().strip().splitlines()[0]
            raise Refused(400, f"{param}: it cannot be followed ({reason}).", param=param)
        return matcher


class GrammarConstraint:
    """A `memograd.policy.constraint.Constraint` over llguidance."""

    def __init__(self, matcher: LLMatcher, end_ids: frozenset[int]) -> None:
        self._matcher = matcher
        self._end_ids = end_ids

    def fork(self) -> GrammarConstraint:
        """An answer of its own, from here on."""
        return GrammarConstraint(self._matcher.deep_copy(), self._end_ids)

    def allowed(self) -> TokenMask | None:
        """The tokens that may come next."""
        mask = self._matcher.compute_bitmask()
        if self._matcher.is_error() or not any(mask):
            raise MemogradError(
                f"The answer cannot be held to its grammar ({self._matcher.get_error()}): ask for "
                "a simpler schema."
            )
        return mask

    def advance(self, token: int) -> None:
        """This token has come; what is wrong with it `allowed` says."""
        if token not in self._end_ids:
            self._matcher.consume_token(token)
