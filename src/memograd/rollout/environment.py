"""Classes written for TRL's `environment_factory` as tasks, unchanged.

Such a class has `reset(**row) -> str | None`, whose text is appended to the last message of the
prompt; public methods with type hints and docstrings, which are its tools; and, if it likes,
`get_reward() -> float`, asked once when the rollout is over. Tools and `get_reward` may be async.

    class Guess:
        def reset(self, **row): self.number = row["number"]; return None
        def compare(self, guess: int) -> str: "..."
        def get_reward(self) -> float: ...

The calls of one action are made in their order, and async ones of different rollouts overlap. An
action without tool calls is the final answer. A call that is malformed, names no tool, has wrong
arguments or makes the tool raise is answered with an error for the policy to read, and counted. An
exception in `reset` or `get_reward` is the environment's fault and stops the run (the runner adds
the rollout's id). Unlike TRL, which resets used instances, every rollout gets a fresh instance.

Invariants: a call reaches the instance of its own rollout only; what an instance does to the row
that it was given (a list that it empties) reaches no other rollout.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import BuiltinMethodType, ClassMethodDescriptorType, MethodDescriptorType
from typing import cast

from memograd.errors import RAISED_BY_USERS, BadInput, MemogradError, place_in
from memograd.rollout.async_calls import Waiting, start
from memograd.rollout.episode import Step, ToolSchema
from memograd.rollout.tool_calls import MalformedCall, ToolCall, check_convention, parse_tool_calls
from memograd.rollout.types import Message, Scenario, own_copy

EnvironmentFactory = Callable[[], object]


class EnvironmentTask:
    """A factory of environments, or several by name, as a `memograd.rollout.episode.EpisodeTask`.

    With several, the column `environment` of a scenario says which one it is for. `chat_template`
    is the policy's: it teaches how tools are called.
    """

    def __init__(
        self,
        factory: EnvironmentFactory | Mapping[str, EnvironmentFactory],
        *,
        chat_template: str,
    ) -> None:
        self._chat_template = chat_template
        self._named = isinstance(factory, Mapping)
        self._factories = cast(
            "Mapping[str | None, EnvironmentFactory]",
            factory if isinstance(factory, Mapping) else {None: factory},
        )
        self._schemas: dict[type, list[ToolSchema]] = {}

    def episodes(self, scenario: Scenario, count: int) -> list[EnvironmentEpisode]:
        """`count` episodes on fresh instances.

        Raises `BadInput` for a class without `reset`, a tool that cannot be described or a chat
        template that calls tools in another way than `memograd.rollout.tool_calls` reads, a
        scenario without chat messages, or one that names no known environment.
        """
        columns = dict(scenario.columns)
        name = columns.pop("environment", None) if self._named else None
        if name not in self._factories:
            known = ", ".join(str(known) for known in self._factories)
            raise BadInput(f"{scenario.id}: environment={name!r} is not one of {known}")
        if scenario.text is not None:
            raise BadInput(f"{scenario.id}: an environment needs chat messages, not a text prompt")
        factory = self._factories[cast("str | None", name)]
        return [self._episode(factory(), scenario, columns) for _ in range(count)]

    def _episode(
        self, environment: object, scenario: Scenario, columns: Mapping[str, object]
    ) -> EnvironmentEpisode:
        kind = type(environment)
        if kind not in self._schemas:
            self._schemas[kind] = describe_tools(environment)
            if self._schemas[kind]:
                check_convention(self._chat_template)
        return EnvironmentEpisode(environment, scenario.messages, columns, self._schemas[kind])


class EnvironmentEpisode:
    """One attempt in one instance of an environment; fulfils `memograd.rollout.episode.Episode`."""

    def __init__(
        self,
        environment: object,
        prompt: Sequence[Message],
        columns: Mapping[str, object],
        tools: Sequence[ToolSchema],
    ) -> None:
        self.tools = tools
        self._environment = environment
        self._methods = {
            name: getattr(environment, name) for name in _tool_names(type(environment))
        }
        # As in TRL, an environment that makes its own problems has an empty prompt to write to.
        self._prompt = list(prompt) or [Message(role="user", content="")]
        self._columns = dict(columns)

    def reset(self) -> list[Message]:
        """The prompt, with what the environment adds to its last message."""
        reset = cast("Callable[..., object]", getattr(self._environment, "reset"))  # noqa: B009
        given = {"prompt": [dict(message) for message in self._prompt], **own_copy(self._columns)}
        with self._told_of("reset"):
            added = reset(**_taken(reset, given))
            if isinstance(added, str):
                added.encode()  # half a character (a lone surrogate) is no token
        if added is None:
            return self._prompt
        if not isinstance(added, str):
            raise MemogradError(
                f"reset of {type(self._environment).__name__} returned {type(added).__name__}, "
                "not a text or None"
            )
        last = self._prompt[-1]
        changed = Message(role=last["role"], content=last["content"] + added)
        return [*self._prompt[:-1], changed]

    def step(self, action: str) -> Waiting[Step]:
        """Make the calls of `action`, in order; one without calls ends the episode."""
        calls = parse_tool_calls(action)
        if not calls:
            return Step(done=True)
        results = []
        for call in calls:
            results.append((yield from self._make(call)))
        return Step(
            observation=tuple(message for message, _ in results),
            failed_calls=tuple(failure for _, failure in results if failure is not None),
        )

    def finish(self) -> Waiting[float | None]:
        """The environment's reward, if it gives one."""
        get_reward = getattr(self._environment, "get_reward", None)
        if get_reward is None:
            return None
        with self._told_of("get_reward"):
            return cast(float, (yield from _result_of(get_reward)))

    @contextmanager
    def _told_of(self, method: str) -> Iterator[None]:
        """Say in which method of the user's class something was raised, and at which line."""
        kind = type(self._environment)
        try:
            yield
        except RAISED_BY_USERS as error:
            file = getattr(sys.modules.get(kind.__module__), "__file__", None)
            raise MemogradError(
                f"{method} of {kind.__name__} raised {type(error).__name__}: {error}"
                f"{place_in(file, error)}"
            ) from error

    def _make(self, call: ToolCall | MalformedCall) -> Waiting[tuple[Message, str | None]]:
        """The message that answers `call`, and the kind of its failure if it failed."""
        if isinstance(call, MalformedCall):
            return _result("", f"Error: this tool call is malformed: {call.reason}"), "malformed"
        method = self._methods.get(call.name)
        if method is None:
            known = ", ".join(self._methods)
            return _result(call.name, f"Error: no such tool; known are {known}"), "unknown_tool"
        try:
            inspect.signature(method).bind(**call.arguments)
        except TypeError as error:
            return _result(call.name, f"Error: wrong arguments: {error}"), "bad_arguments"
        try:
            result = yield from _result_of(partial(method, **call.arguments))
            text = str(result)
            text.encode()  # half a character (a lone surrogate) is no token
            return _result(call.name, text), None
        except RAISED_BY_USERS as error:
            return _result(call.name, f"Error: {type(error).__name__}: {error}"), "raised"


def _taken(reset: Callable[..., object], given: Mapping[str, object]) -> dict[str, object]:
    """What `reset` names, or all if it takes any: a row's id, say, is not forced on it."""
    parameters = inspect.signature(reset).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return dict(given)
    return {name: value for name, value in given.items() if name in parameters}


def _result(tool: str, content: str) -> Message:
    return Message(role="tool", name=tool, content=content)


def _result_of(function: Callable[[], object]) -> Waiting[object]:
    """What a function returns, waited for if it is async."""
    value = function()
    if not inspect.isawaitable(value):
        return value
    future = start(value)
    yield future
    return future.result()


def _tool_names(kind: type) -> list[str]:
    # Asked of the class: asking the instance would run its properties.
    return [
        name
        for name, _ in inspect.getmembers(kind, predicate=_is_method)
        if name not in ("reset", "get_reward") and not name.startswith("_")
    ]


def _is_method(member: object) -> bool:
    """Whether a member of a class is a method that was written for it: a class method and one under
    a decorator too, but none that a built-in type brings along."""
    if isinstance(member, MethodDescriptorType | ClassMethodDescriptorType | BuiltinMethodType):
        return False
    return callable(member) and inspect.isroutine(member)


def describe_tools(environment: object) -> list[ToolSchema]:
    """The schemas of an environment's tools, made as transformers makes them for chat templates.

    Raises `BadInput` for a class without a plain `reset`, or a tool that cannot be described.
    """
    from transformers.utils.chat_template_utils import (
        DocstringParsingException,
        TypeHintParsingException,
        get_json_schema,
    )

    kind = type(environment)
    if not callable(getattr(environment, "reset", None)):
        raise BadInput(f"the environment {kind.__name__} has no method reset; give it one")
    if inspect.iscoroutinefunction(getattr(environment, "reset")):  # noqa: B009
        raise BadInput(
            f"reset of the environment {kind.__name__} is async; make it a plain function (tools "
            "and get_reward may be async)"
        )
    schemas: list[ToolSchema] = []
    for name in _tool_names(kind):
        try:
            schemas.append(get_json_schema(getattr(environment, name)))
        except NameError as error:
            raise BadInput(
                f"the tool {kind.__name__}.{name} cannot be described to a model: a type hint of "
                f"it is not there when it runs ({error}); import what it names outside of "
                "TYPE_CHECKING"
            ) from error
        except (DocstringParsingException, TypeHintParsingException) as error:
            raise BadInput(
                f"the tool {kind.__name__}.{name} cannot be described to a model: {error} Give it "
                "type hints and a docstring with an Args section, or begin its name with _"
            ) from error
    return schemas
