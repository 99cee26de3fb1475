"""`RewardModel`: a classifier with one output that scores an answer to a prompt.

A row is what the chat template makes of the prompt and the answer as the assistant's message (text
prompts: the two texts and the end token), as TRL's RewardTrainer does it; a row that is too long
loses its beginning, so the end of the answer, where the score is read, is always seen. Rows are
padded on the right in batches of similar length.

For training, the backbone may be a causal language model (the packaged one, a folder or a hub id):
its head is replaced by a fresh one, drawn from a seed. For scoring, the head must have been
trained: a checkpoint without one is refused, since its scores would be noise. The score is read at
the last token that is no padding, so padding must be a token that no row ends with: where the
tokenizer pads with its end token, another special token pads in training. On CUDA the backbone is
in bf16 and the head in fp32, because two good answers differ by less than bf16 can tell at the size
of a score.

Invariants: the score of an item depends on nothing but the item, neither on its batch mates nor on
the order (to float rounding); no head that was not trained ever scores.
"""

from __future__ import annotations

import json
import logging
import math
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

import torch
from jinja2 import TemplateError
from peft import PeftModel
from safetensors import SafetensorError
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from memograd.config.settings import LoraConfig
from memograd.errors import BadInput, MemogradError
from memograd.grpo.run_folder import RunFolder
from memograd.policy.loading import (
    choose_device,
    choose_dtype,
    first_line,
    fresh_adapter,
    onednn_is_faster,
    quiet_libraries,
    resolve_model,
    speed_up_linears,
)
from memograd.policy.prefill import batches_by_tokens
from memograd.reward_model.api import Item, Prompt
from memograd.reward_model.length import LengthControl
from memograd.rollout.types import Message

HEADS = ("score", "classifier")
"""What transformers calls the layer that makes the score."""


def open_tokenizer(model: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of `model`; unlike a policy's, it may be without a chat template.

    A path is a folder that holds a tokenizer, with or without a model.
    """
    location = model if isinstance(model, Path) else resolve_model(model)
    try:
        return cast(PreTrainedTokenizerBase, AutoTokenizer.from_pretrained(location))
    except (OSError, ValueError) as error:
        raise BadInput(
            f"model={model}: its tokenizer cannot be loaded: {first_line(error)}"
        ) from error


def open_backbone(model: str, device: torch.device, seed: int) -> PreTrainedModel:
    """`model` with one output, to be trained; a head that is missing is drawn from `seed`."""
    loaded, _ = _load(model, device, seed)
    return _ready(loaded, device)


def open_trained(model: str, device: torch.device) -> PreTrainedModel:
    """`model` with its trained head, to score with.

    Raises BadInput if the checkpoint has no such head: a language model, for example.
    """
    loaded, missing = _load(model, device, seed=0)
    if missing:
        raise BadInput(
            f"{model} has no trained score head ({', '.join(sorted(missing)[:3])}): it is no "
            "reward model; make one of it with memograd reward-model train."
        )
    return _ready(loaded, device)


def set_padding(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
    """Let a backbone that is to be trained pad with a token that no row ends with.

    Without another special token it pads with the end token; the score is then read at the last
    token before the end, which is as well defined.
    """
    end = tokenizer.eos_token_id
    if tokenizer.pad_token_id in (None, end):
        special = [tokenizer.unk_token_id, *tokenizer.all_special_ids]
        others = [token for token in special if token not in (None, end)]
        if not others and end is None:
            raise BadInput(
                "The tokenizer has no special token, so rows of different length cannot be padded; "
                "choose another model."
            )
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(cast(int, (others or [end])[0]))
    model.config.get_text_config().pad_token_id = tokenizer.pad_token_id


def _load(model: str, device: torch.device, seed: int) -> tuple[PreTrainedModel, set[str]]:
    location = resolve_model(model)
    disable_progress_bar()
    # Transformers warns of a head that is new; `missing` tells us, and the caller decides.
    warnings = logging.getLogger("transformers.modeling_utils")
    warnings.addFilter(_silence)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            loaded, info = AutoModelForSequenceClassification.from_pretrained(
                location, num_labels=1, dtype=choose_dtype(device), output_loading_info=True
            )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise BadInput(
            f"model={model} cannot be opened as a classifier with one output: {first_line(error)}"
        ) from error
    finally:
        warnings.removeFilter(_silence)
    return cast(PreTrainedModel, loaded), set(info["missing_keys"])


def _silence(record: logging.LogRecord) -> bool:
    return False


def _ready(loaded: PreTrainedModel, device: torch.device) -> PreTrainedModel:
    module = cast(torch.nn.Module, loaded)
    module.to(device)
    module.eval()
    loaded.config.use_cache = False
    head: Any = next((getattr(loaded, name) for name in HEADS if hasattr(loaded, name)), None)
    if isinstance(head, torch.nn.Linear) and head.weight.dtype != torch.float32:
        head.float()
        head.register_forward_pre_hook(_in_full_precision)
    if onednn_is_faster():
        speed_up_linears(module)
    return loaded


def _in_full_precision(head: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return (inputs[0].float(), *inputs[1:])


CARD = "reward_model.json"
BATCH_TOKENS = {"cpu": 2048, "cuda": 32_768, "mps": 4096}
"""Tokens, padding included, of one forward without gradients, by device."""


@dataclass(frozen=True)
class Card:
    """What a saved reward model says about itself beside its weights.

    `backbone`: the model that its adapter belongs to, or None if all weights are there.
    """

    backbone: str | None
    max_length: int
    string_prompts: Literal["text", "chat"]


class RewardModel:
    """Scores answers. `module` is the classifier, as peft wraps it if there is an adapter."""

    def __init__(
        self,
        module: torch.nn.Module,
        tokenizer: PreTrainedTokenizerBase,
        card: Card,
        *,
        name: str,
        length_control: LengthControl | None = None,
    ) -> None:
        self.module = module.eval()
        self.tokenizer = tokenizer
        self.card = card
        self.name = name
        self.length_control = length_control

    @classmethod
    def begin(
        cls,
        model: str,
        *,
        lora: LoraConfig | None,
        adapter: Path | None = None,
        device: str = "auto",
        seed: int = 0,
        max_length: int = 1024,
        string_prompts: Literal["text", "chat"] = "chat",
    ) -> RewardModel:
        """`model` to be trained: with a fresh adapter, with the one in `adapter`, or whole.

        `lora` None trains every weight. Raises BadInput for a model that cannot be trained so.
        """
        tokenizer = open_tokenizer(model)
        base = open_backbone(model, choose_device(device), seed)
        set_padding(tokenizer, base)
        module: torch.nn.Module = cast(torch.nn.Module, base)
        if adapter is not None:
            with quiet_libraries():
                module = PeftModel.from_pretrained(base, adapter, is_trainable=True)
        elif lora is not None:
            module = fresh_adapter(base, lora, seed=seed, name=model, task_type="SEQ_CLS")
        backbone = model if lora is not None else None
        made = cls(module, tokenizer, Card(backbone, 1, string_prompts), name=model)
        made.card = Card(backbone, min(max_length, made.context_length), string_prompts)
        made.encode(Item("", "") if string_prompts == "text" else Item(_chat(""), ""))
        return made

    @classmethod
    def open(cls, place: str | Path, *, device: str = "auto") -> RewardModel:
        """A trained reward model: a run folder, a checkpoint in one, a merged folder or a hub id.

        Raises BadInput if there is none, or if it is no reward model.
        """
        folder = Path(place).expanduser()
        if (folder / "run.json").is_file():
            folder = latest_checkpoint(folder)
        length_control = LengthControl.of(folder)
        card = _card(folder)
        where = choose_device(device)
        if card is None:
            return cls._foreign(str(place), where, length_control)
        tokenizer = open_tokenizer(folder)
        if card.backbone is None:
            base = open_trained(str(folder), where)
            return cls(
                cast(torch.nn.Module, base),
                tokenizer,
                card,
                name=str(place),
                length_control=length_control,
            )
        base = open_backbone(card.backbone, where, seed=0)
        base.config.get_text_config().pad_token_id = tokenizer.pad_token_id
        with quiet_libraries():
            module = PeftModel.from_pretrained(base, folder)
        return cls(module, tokenizer, card, name=str(place), length_control=length_control)

    @classmethod
    def _foreign(
        cls, model: str, device: torch.device, length_control: LengthControl | None
    ) -> RewardModel:
        """A classifier that somebody else trained: its own padding, template and length."""
        module = open_trained(model, device)
        tokenizer = open_tokenizer(model)
        if module.config.get_text_config().pad_token_id is None:
            set_padding(tokenizer, module)
        kind: Literal["text", "chat"] = "chat" if tokenizer.chat_template else "text"
        made = cls(
            cast(torch.nn.Module, module),
            tokenizer,
            Card(None, 1, kind),
            name=model,
            length_control=length_control,
        )
        longest = min(made.context_length, tokenizer.model_max_length)
        made.card = Card(None, longest, kind)
        return made

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.module.parameters()).device

    @property
    def peft_model(self) -> torch.nn.Module:
        """`module`, by the name under which the trainers' loop asks for what it trains."""
        return self.module

    @property
    def config(self) -> Any:
        """The classifier's own configuration."""
        return cast(Any, self.module).config

    @property
    def context_length(self) -> int:
        """The longest row the model was made for, in tokens; no limit if it names none."""
        text = self.config.get_text_config()
        return int(getattr(text, "max_position_embeddings", None) or sys.maxsize)

    def environment(self) -> dict[str, str]:
        """What numbers may depend on beside the settings: device, number type, versions."""
        packages = ("memograd", "torch", "transformers", "peft", "tokenizers")
        return {
            "device": str(self.device),
            "dtype": str(next(self.module.parameters()).dtype),
            "pad_token": str(self.tokenizer.pad_token),
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        }

    def parameters(self) -> list[torch.nn.Parameter]:
        """The weights that training moves, in a stable order."""
        return [p for p in self.module.parameters() if p.requires_grad]

    def length_slope(self) -> float:
        """What a character was found to earn by itself when the model was trained."""
        if self.length_control is None:
            raise BadInput(
                f"{self.name} has no fitted price of length (length_control.json), because "
                "memograd did not train it; give length_slope=NUMBER instead."
            )
        return self.length_control.slope

    def encode(self, item: Item) -> list[int]:
        """The whole row of an item, however long: prompt, answer, end of the answer."""
        prompt: Prompt = item.prompt
        if isinstance(prompt, str) and self.card.string_prompts == "chat":
            prompt = _chat(prompt)
        if isinstance(prompt, str):
            text_ids = list(cast(list[int], self.tokenizer(prompt + item.answer)["input_ids"]))
            end = cast(int | None, self.tokenizer.eos_token_id)
            return text_ids if end is None or text_ids[-1:] == [end] else [*text_ids, end]
        if not self.tokenizer.chat_template:
            raise BadInput(
                f"{self.name} has no chat template, so it cannot be given chat messages; give it "
                "texts (string_prompts=text), or choose a model that was made for chats."
            )
        chat: list[dict[str, Any]] = [dict(message) for message in prompt]
        chat.append({"role": "assistant", "content": item.answer})
        try:
            ids = self.tokenizer.apply_chat_template(chat, tokenize=True, return_dict=False)
        except TemplateError as error:
            raise BadInput(f"The chat template of {self.name} refuses a chat: {error}.") from error
        return list(cast(list[int], ids))

    def shortened(self, ids: Sequence[int]) -> list[int]:
        """The last `max_length` tokens of a row."""
        return list(ids[-self.card.max_length :])

    @torch.no_grad()
    def score(self, items: Sequence[Item]) -> list[float]:
        """One score per item, in their order.

        Raises MemogradError if a score is not a finite number.
        """
        rows = [self.shortened(self.encode(item)) for item in items]
        scores = [math.nan] * len(rows)
        self.module.eval()
        for batch in batches_by_tokens(list(map(len, rows)), BATCH_TOKENS[self.device.type]):
            found = self._forward([rows[index] for index in batch])
            for index, score in zip(batch, found, strict=True):
                if not math.isfinite(score):
                    raise MemogradError(
                        f"{self.name} scored item {index} with {score}, not a finite number."
                    )
                scores[index] = score
        return scores

    def _forward(self, rows: Sequence[Sequence[int]]) -> list[float]:
        longest = max(map(len, rows))
        padding = self.config.get_text_config().pad_token_id
        ids_BT = torch.full((len(rows), longest), padding, device=self.device)
        mask_BT = torch.zeros_like(ids_BT)
        for index, row in enumerate(rows):
            ids_BT[index, : len(row)] = torch.tensor(row, device=self.device)
            mask_BT[index, : len(row)] = 1
        logits_B1 = self.module(input_ids=ids_BT, attention_mask=mask_BT).logits
        return [float(score) for score in logits_B1[:, 0].float().tolist()]

    def save(self, folder: Path) -> None:
        """Write the trained weights, the tokenizer and the card; `open` reads them."""
        cast(Any, self.module).save_pretrained(str(folder))
        self.tokenizer.save_pretrained(folder)
        self.save_card(folder)

    def save_card(self, folder: Path, *, merged: bool = False) -> None:
        """Write the card; of a `merged` model, it names no backbone."""
        card = Card(None, self.card.max_length, self.card.string_prompts) if merged else self.card
        (folder / CARD).write_text(json.dumps(asdict(card), indent=2), encoding="utf-8")


def _chat(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


def latest_checkpoint(folder: Path) -> Path:
    """The last complete checkpoint of a reward model's run; BadInput where there is none."""
    run = RunFolder.open(folder)
    if run.task != "reward-model":
        raise BadInput(f"{folder} is a run of {run.task or 'another task'}, not of a reward model.")
    checkpoint = run.latest_checkpoint()
    if checkpoint is None:
        raise BadInput(f"{folder} has no complete checkpoint, so there is no reward model in it.")
    return checkpoint


def _card(folder: Path) -> Card | None:
    path = folder / CARD
    if not path.is_file():
        return None
    try:
        return Card(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise BadInput(f"{path} is damaged ({error}); train or merge the model anew.") from error
