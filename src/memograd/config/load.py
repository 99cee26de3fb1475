"""The settings of a run: from a TOML file and `key=value` overrides, and from its `config.json`.

Later sources win. A mistake is one sentence that names the key, where it was written and what is
expected; nothing unknown is ever ignored. Runs that were made while all tasks shared one list of
settings hold sections of other tasks too; those, and only those, are left out when they are read
back.

Invariants: whatever the order of sources, the last one that names a key decides it; a configuration
written out as overrides is read back equal, and so is what a run wrote.
"""

from __future__ import annotations

import difflib
import json
import tomllib
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import annotated_types
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from memograd.config.settings import LoraConfig, Settings
from memograd.errors import BadInput

S = TypeVar("S", bound=Settings)


def load_settings(
    kind: type[S],
    file: Path | None,
    overrides: Sequence[str],
    *,
    read_elsewhere: Callable[[str], Sequence[str]] = lambda key: (),
) -> S:
    """Settings of that kind from an optional TOML file and `key=value` overrides that win over it.

    Keys of a section are dotted (`lora.r=32`), lists are separated by commas
    (`train=conv-26,conv-30`) or JSON (`stop=["a, b"]`), `none` clears an optional value. Relative
    paths are relative to the working directory, wherever they are written. `read_elsewhere` names
    the tasks that read a key which this one does not, for the message.

    Raises:
        BadInput: the file cannot be read or parsed, a key is unknown, a value does not fit; the
            sentence names the key, where it was written and what is expected.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for written, value in _flatten({} if file is None else read_toml(file)):
        key = written if value == {} else _spelt_out(kind, written)
        origins[key] = f"the file {file}"
        if value == {} and any(name.startswith(f"{key}.") for name in known_settings(kind)):
            continue  # a section of ours that is empty
        _check_key(kind, key, origins[key], read_elsewhere)
        values[key] = value
    for override in overrides:
        key, separator, text = override.partition("=")
        key = _spelt_out(kind, key.strip())
        if not separator or not key:
            raise BadInput(
                f"The command line has {override!r} where key=value is expected, such as steps=100."
            )
        origins[key] = "the command line"
        _check_key(kind, key, origins[key], read_elsewhere)
        values[key] = _parse_text(kind, key, text)
    for key, value in values.items():
        if not all(map(_is_text, _texts(value))):
            raise BadInput(
                f"{key} in {origins[key]} holds half of a character, or bytes that are no UTF-8:"
                " write it anew."
            )
    try:
        # Through JSON, because there a strict check still takes a string as a path.
        return kind.model_validate_json(json.dumps(_nest(values), default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        for key in _location(first["loc"]):
            if key in values:
                raise _misfit(kind, key, values[key], origins[key]) from error
        raise BadInput(first["msg"].removeprefix("Value error, ").rstrip(".") + ".") from error


def known_settings(kind: type[Settings]) -> dict[str, FieldInfo]:
    """Every key that can be set, dotted, with its description and default, in reading order."""
    found: dict[str, FieldInfo] = {}
    for name, field in kind.model_fields.items():
        if isinstance(field.default, Settings):
            inner = type(field.default).model_fields
            found.update({f"{name}.{key}": inner[key] for key in inner})
        else:
            found[name] = field
    return found


def _spelt_out(kind: type[Settings], key: str) -> str:
    """`sampler` as `sampler.engine`, for a section whose bare name means one of its settings."""
    field = kind.model_fields.get(key)
    section = None if field is None else field.default
    meant = section.shorthand if isinstance(section, Settings) else ""
    return f"{key}.{meant}" if meant else key


def read_toml(file: Path) -> dict[str, Any]:
    """What a configuration file says. Raises BadInput where it cannot be read as TOML."""
    try:
        # With the mark that Windows' editors put before UTF-8, or without.
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"The configuration file {file} cannot be read: {reason}.") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"The configuration file {file} is not UTF-8 text: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"The configuration file {file} is not valid TOML: {error}.") from error


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _nest(values: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[name] = value
    return nested


_CALLED_ELSEWHERE: Final[Mapping[str, Sequence[str]]] = {
    # TRL and transformers
    "model_name_or_path": ("model",),
    "train_dataset": ("data",),
    "eval_dataset": ("text.eval_data", "eval_data"),
    "reward_funcs": ("rewards",),
    "max_steps": ("steps",),
    "num_train_epochs": ("steps", "epochs"),
    "output_dir": ("out",),
    "resume_from_checkpoint": ("resume",),
    "report_to": ("track",),
    "per_device_train_batch_size": ("prompts_per_step", "batch_size"),
    "per_device_eval_batch_size": ("eval_batch_size",),
    "lr_scheduler_type": ("learning_rate_schedule",),
    "loss_type": ("algorithm", "aggregation"),
    "scale_rewards": ("advantage",),
    "gradient_checkpointing": ("activation_checkpointing",),
    "stop_strings": ("stop",),
    "lora_r": ("lora.r",),
    "lora_alpha": ("lora.alpha",),
    "lora_dropout": ("lora.dropout",),
    # what a run begins with: an adapter of a language model, or the head of memory-ops
    "adapter": ("policy", "start"),
    "policy": ("adapter",),
}
"""What other trainers, and other tasks, call one of our settings; the first that a task knows."""


def _check_key(
    kind: type[Settings], key: str, origin: str, read_elsewhere: Callable[[str], Sequence[str]]
) -> None:
    known = known_settings(kind)
    if key in known:
        return
    within = [name for name in known if name.startswith(f"{key}.")]
    if within:
        raise BadInput(f"{key} in {origin} is a section: set {', '.join(within)} one by one.")
    # The same name in a section first ("r" finds "lora.r"), then what is spelt alike.
    close = [name for name in known if name.rpartition(".")[2] == key.rpartition(".")[2]]
    close += [name for name in _CALLED_ELSEWHERE.get(key, ()) if name in known]
    if tasks := read_elsewhere(key):
        instead = f"did you mean {' or '.join(close)}?" if close else "leave it out."
        raise BadInput(
            f"{key} in {origin} is a setting of {', '.join(tasks)}, which this task does not read: "
            f"{instead}"
        )
    # What is called otherwise elsewhere is known; what is merely spelt alike would mislead.
    close = close or difflib.get_close_matches(key, known, cutoff=0.7)
    if close:
        raise BadInput(f"Unknown key {key!r} in {origin}: did you mean {' or '.join(close)}?")
    raise BadInput(
        f"Unknown key {key!r} in {origin}: --help lists the {len(known)} that this command reads."
    )


def _parse_text(kind: type[Settings], key: str, text: str) -> Any:
    """The JSON value that `text` means for the field `key`; its range is checked with the rest."""
    kinds = _kinds(known_settings(kind)[key])
    if type(None) in kinds and text.strip().lower() == "none":
        return None
    if get_origin(kinds[0]) is list:
        if text.lstrip().startswith("["):
            return _json_list(key, text)
        blank = next((one for one in text.split(",") if one and not one.strip()), None)
        if blank is not None:  # it would be lost
            raise BadInput(
                f"{key} in the command line has an entry of blanks or line breaks: write the list"
                f""" as JSON, {key}='{json.dumps([blank])}', or leave the entry out."""
            )
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return [_parse_entry(kind, key, _entry(kinds[0]), part) for part in parts]
    if kinds[0] not in (int, float, bool):
        if not text:
            raise _misfit(kind, key, text, "the command line")
        return text
    try:
        return TypeAdapter(kinds[0]).validate_strings(text)
    except ValidationError as error:
        raise _misfit(kind, key, text, "the command line") from error


def _json_list(key: str, text: str) -> list[Any]:
    """A list whose texts hold commas, or blanks at their ends."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadInput(
            f"{key} in the command line begins with [ and is not JSON ({error}): write"
            f""" {key}='["one","two"]', or {key}=one,two."""
        ) from error
    return list(found)


def _parse_entry(kind: type[Settings], key: str, entry: Any, text: str) -> Any:
    if entry not in (int, float):
        return text
    try:
        return entry(text)
    except ValueError as error:
        raise _misfit(kind, key, text, "the command line") from error


def _kinds(field: FieldInfo) -> tuple[Any, ...]:
    """The members of the field's type without ranges: `Count | None` gives (int, NoneType)."""
    return tuple(_plain(member) for member in _members(field))


def _members(field: FieldInfo) -> tuple[Any, ...]:
    union = get_origin(field.annotation) in (Union, types.UnionType)
    return get_args(field.annotation) if union else (field.annotation,)


def _plain(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _limits(field: FieldInfo) -> list[Any]:
    """The ranges of the field, and of a member of its type (`Text | None`)."""
    limits = list(field.metadata)
    for member in _members(field):
        for note in get_args(member)[1:] if get_origin(member) is Annotated else ():
            limits += note.metadata if isinstance(note, FieldInfo) else [note]
    return limits


def _location(location: tuple[int | str, ...]) -> list[str]:
    """The dotted keys that an error's location may mean, longest first."""
    names = [str(part) for part in location]
    return [".".join(names[:end]) for end in range(len(names), 0, -1)]


def _misfit(kind: type[Settings], key: str, value: Any, origin: str) -> BadInput:
    expected = _expected(known_settings(kind)[key])
    return BadInput(f"{key} must be {expected}, but {origin} says {value!r}.")


def _entry(kind: Any) -> Any:
    """The type of one entry of a list of that type, without its range."""
    return _plain((*get_args(kind), str)[0])


def _entries(kind: Any) -> str:
    """What a list of that type is a list of."""
    entry = _entry(kind)
    if get_origin(entry) is Literal:
        return ", ".join(get_args(entry))
    return {int: "whole numbers", float: "numbers"}.get(entry, "texts")


def _expected(field: FieldInfo) -> str:
    kind, *others = _kinds(field)
    names: dict[Any, str] = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a text",
        Path: "a path",
        list: f"a list of {_entries(kind)}",
        Literal: f"one of {', '.join(map(str, get_args(kind)))}",
    }
    expected = names[get_origin(kind) or kind]
    limits = []
    for limit in _limits(field):
        match limit:
            case annotated_types.Ge(ge):
                limits.append(f"of at least {ge}")
            case annotated_types.Gt(gt):
                limits.append(f"above {gt}")
            case annotated_types.Le(le):
                limits.append(f"of at most {le}")
            case annotated_types.Lt(lt):
                limits.append(f"below {lt}")
            case annotated_types.MinLen():
                limits.append("that is not empty")
    return " ".join([expected, " and ".join(limits)]).strip() + (" or none" if others else "")


_ONCE_SHARED: Final = {"train", "eval", "memory", "text", "episodes", "sql", "served", "build"}


@dataclass(frozen=True)
class Begun:
    """What another run needs to know to begin with a run's adapter.

    recipe: sft, dpo or reward-model; empty for runs of a task.
    """

    model: str
    lora: LoraConfig
    recipe: str


def stored_values(config_json: str) -> dict[str, Any]:
    """The settings as they stand in the file.

    Raises ValueError where that is no JSON object.
    """
    values = json.loads(config_json)
    if not isinstance(values, dict):
        raise ValueError("it is no JSON object")
    return values


def stored_settings(config_json: str, kind: type[S]) -> S:
    """The settings of that kind in a run's `config.json`.

    Raises pydantic's ValidationError for settings that do not fit this version, and ValueError for
    what is no JSON object.
    """
    return kind.model_validate_json(json.dumps(values_of_kind(stored_values(config_json), kind)))


def values_of_kind(values: Mapping[str, Any], kind: type[Settings]) -> dict[str, Any]:
    """Those of a run's stored values that are settings of that kind, and what nobody knows."""
    known = {key: value for key, value in values.items() if _belongs(kind, key)}
    known.pop("recipe", None)
    for key in _ONCE_SHARED & known.keys():
        section = kind.model_fields[key].default
        if isinstance(section, Settings) and isinstance(known[key], Mapping):
            fields = type(section).model_fields
            known[key] = {name: value for name, value in known[key].items() if name in fields}
    return known


def begun_with(config_json: str) -> Begun:
    """Model and adapter of a run, whatever made it. Raises as `stored_settings`."""
    values = stored_values(config_json)
    lora = LoraConfig.model_validate(values.get("lora", {}))
    return Begun(str(values.get("model", "")), lora, str(values.get("recipe", "")))


def _belongs(kind: type[Settings], key: str) -> bool:
    return key in kind.model_fields or key not in _ONCE_SHARED
