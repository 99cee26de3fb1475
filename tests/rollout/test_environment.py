"""Classes written for TRL's `environment_factory` work unchanged."""

from __future__ import annotations

import asyncio
import json
from functools import cached_property, lru_cache

import pytest

from memograd.errors import BadInput, MemogradError
from memograd.rollout import Message, Scenario
from memograd.rollout.async_calls import run_together
from memograd.rollout.environment import EnvironmentTask
from memograd.rollout.episode import Limits
from memograd.rollout.lockstep import run_in_lockstep

TEMPLATE = "Call a tool as <tool_call>{...}</tool_call>."


class Ledger:
    """An environment as TRL's documentation describes one."""

    def __init__(self) -> None:
        self.entries: list[int] = []
        self.answer: int | None = None

    @property
    def expensive(self) -> int:
        raise AssertionError("properties are not asked")

    def reset(self, **row) -> str | None:
        self.answer = row["answer"]
        assert row["prompt"][-1]["role"] == "user"
        return f" The limit is {row['limit']}."

    def add(self, amount: int) -> str:
        """Write an amount down.

        Args:
            amount: The amount, in euros.

        Returns:
            The sum so far.
        """
        if amount < 0:
            raise ValueError("no debts")
        self.entries.append(amount)
        return f"sum {sum(self.entries)}"

    async def wait(self) -> list[int]:
        """Wait for the books."""
        await asyncio.sleep(0)
        return self.entries

    def get_reward(self) -> float:
        return 1.0 if sum(self.entries) == self.answer else 0.0

    def _private(self) -> None: ...


SCENARIO = Scenario(
    id="s1",
    messages=(Message(role="system", content="Be exact."), Message(role="user", content="Add.")),
    columns={"answer": 5, "limit": 9},
)


def call(name: str, **arguments: object) -> str:
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>"


def now(work):
    """What a step or the end of an episode gives, waited for."""
    (result,) = run_together([work])
    return result


def one_episode(factory=Ledger, scenario: Scenario = SCENARIO):
    (episode,) = EnvironmentTask(factory, chat_template=TEMPLATE).episodes(scenario, 1)
    return episode


def test_tools_are_the_public_methods_as_transformers_describes_them() -> None:
    tools = {tool["function"]["name"]: tool["function"] for tool in one_episode().tools}
    assert list(tools) == ["add", "wait"]
    assert tools["add"]["description"] == "Write an amount down."
    assert tools["add"]["parameters"]["properties"] == {
        "amount": {"type": "integer", "description": "The amount, in euros."}
    }


def test_what_reset_returns_is_appended_to_the_last_message() -> None:
    episode = one_episode()
    assert episode.reset() == [
        Message(role="system", content="Be exact."),
        Message(role="user", content="Add. The limit is 9."),
    ]
    assert SCENARIO.messages[-1]["content"] == "Add."


def test_calls_are_made_in_order_and_an_answer_without_calls_ends() -> None:
    episode = one_episode()
    episode.reset()
    step = now(
        episode.step("First. " + call("add", amount=2) + call("wait") + call("add", amount=3))
    )
    assert [message["content"] for message in step.observation] == ["sum 2", "[2]", "sum 5"]
    assert {message["role"] for message in step.observation} == {"tool"}
    assert [message.get("name") for message in step.observation] == ["add", "wait", "add"]
    assert (step.done, step.failed_calls) == (False, ())
    assert now(episode.step("It is 5.")).done
    assert now(episode.finish()) == 1.0


@pytest.mark.parametrize(
    ("action", "kind", "told"),
    [
        ("<tool_call>add(2)</tool_call>", "malformed", "this tool call is malformed: not JSON"),
        (call("subtract", amount=1), "unknown_tool", "no such tool; known are add, wait"),
        (call("get_reward"), "unknown_tool", "no such tool"),
        (call("_private"), "unknown_tool", "no such tool"),
        (call("add", much=1), "bad_arguments", "wrong arguments: missing a required argument"),
        (call("add", amount=-1), "raised", "ValueError: no debts"),
        (call("add", amount="two"), "raised", "TypeError"),
    ],
)
def test_a_failed_call_is_told_and_counted(action: str, kind: str, told: str) -> None:
    episode = one_episode()
    episode.reset()
    step = now(episode.step(action + call("add", amount=1)))
    assert step.failed_calls == (kind,)
    assert not step.done
    failed, worked = (message["content"] for message in step.observation)
    assert failed.startswith("Error: ") and told in failed
    assert worked == "sum 1"


def test_async_tools_work_inside_a_running_loop() -> None:
    """As in a notebook; and all calls share one loop, as async clients want it."""
    loops = []

    class Clients:
        def reset(self, **row) -> None: ...

        async def fetch(self) -> str:
            """Fetch something."""
            loops.append(asyncio.get_running_loop())
            return "fetched"

    async def notebook() -> list[str]:
        episode = one_episode(Clients)
        episode.reset()
        steps = [now(episode.step(call("fetch"))) for _ in range(2)]
        return [step.observation[0]["content"] for step in steps]

    assert asyncio.run(notebook()) == ["fetched", "fetched"]
    assert loops[0] is loops[1]


def test_async_tools_of_a_batch_overlap(tiny_tokenizer, chat_of, scripted) -> None:
    """No call comes back before every rollout has made one."""
    calls: list[int] = []
    everybody = {turn: asyncio.Event() for turn in (1, 2)}

    class Patient:
        def reset(self, **row) -> None:
            self.turn = 0

        async def fetch(self) -> str:
            """Fetch something."""
            self.turn += 1
            calls.append(self.turn)
            if calls.count(self.turn) == 8:
                everybody[self.turn].set()
            await asyncio.wait_for(everybody[self.turn].wait(), 30)
            return f"turn {self.turn}"

        async def get_reward(self) -> float:
            return float(self.turn)

    def says(shown: str, sample: int) -> str:
        return call("fetch") * 2 if "turn 1" not in shown else "done"

    shows_tools = "{{ tools }}" + tiny_tokenizer.chat_template

    scenario = Scenario("s", (Message(role="user", content="go"),))
    task = EnvironmentTask(Patient, chat_template=TEMPLATE)
    (group,) = run_in_lockstep(
        scripted(tiny_tokenizer, says),
        chat_of(tiny_tokenizer, chat_template=shows_tools),
        [task.episodes(scenario, 8)],
        rollout_ids=[[f"rollout {place}" for place in range(8)]],
        limits=Limits(),
        temperature=1.0,
        max_completion_length=200,
        generator=None,
    )
    for rollout in group:
        told = [one["content"] for one in rollout.messages if one["role"] == "tool"]
        assert told == ["turn 1", "turn 2"]
        assert (rollout.reward, rollout.failed_calls) == (2.0, {})


def test_the_column_environment_chooses_among_several() -> None:
    class Silent:
        def reset(self, **row) -> None:
            assert "environment" not in row

    def scenario(name: str) -> Scenario:
        columns = {**SCENARIO.columns, "environment": name}
        return Scenario(id="s2", messages=(), columns=columns)

    task = EnvironmentTask({"ledger": Ledger, "silent": Silent}, chat_template=TEMPLATE)
    (ledger,) = task.episodes(scenario("ledger"), 1)
    (silent,) = task.episodes(scenario("silent"), 1)
    assert len(ledger.tools) == 2 and silent.tools == []
    assert silent.reset() == [Message(role="user", content="")]
    assert now(silent.finish()) is None
    with pytest.raises(BadInput, match="s2: environment='bank' is not one of ledger, silent"):
        task.episodes(scenario("bank"), 1)


def test_a_row_that_an_instance_edits_is_whole_for_the_next_one() -> None:
    class Deck:
        def reset(self, cards, limits) -> str:
            limits["low"]["n"] -= 1
            return f" {cards.pop()} {len(cards)} {limits['low']['n']}"

    columns = {"cards": ["ace", "king"], "limits": {"low": {"n": 3}}}
    scenario = Scenario("s1", SCENARIO.messages, columns)
    for _ in range(2):
        for episode in EnvironmentTask(Deck, chat_template=TEMPLATE).episodes(scenario, 2):
            assert episode.reset()[-1]["content"] == "Add. king 1 2"
    assert columns == {"cards": ["ace", "king"], "limits": {"low": {"n": 3}}}


def test_class_methods_and_decorated_ones_are_tools_and_what_a_built_in_brings_is_none() -> None:
    class Bank(dict):
        Nested = Ledger

        def reset(self, **row) -> None: ...

        @classmethod
        def rate(cls, year: int) -> str:
            """Look a rate up.

            Args:
                year: The year.
            """
            return f"{year} %"

        @lru_cache  # noqa: B019
        def fee(self) -> str:
            """Look the fee up."""
            return "two"

        __hash__ = object.__hash__

        @cached_property
        def expensive(self) -> int:
            raise AssertionError("properties are not asked")

    episode = one_episode(Bank)
    assert [tool["function"]["name"] for tool in episode.tools] == ["fee", "rate"]
    assert now(episode.step(call("rate", year=7))).observation[0]["content"] == "7 %"
    assert now(episode.step(call("fee"))).observation[0]["content"] == "two"


def test_a_class_that_cannot_be_used_is_bad_input() -> None:
    class NoReset: ...

    class Untyped:
        def reset(self, **row) -> None: ...

        def look(self, where):
            """Look."""

    class ForCheckersOnly:
        def reset(self, **row) -> None: ...

        def look(self, where: "Nowhere") -> str:  # noqa: F821, UP037
            """Look.

            Args:
                where: Where.
            """
            return ""

    class NoText:
        def reset(self, **row):
            return ["an image"]

    with pytest.raises(BadInput, match="NoReset has no method reset"):
        one_episode(NoReset)
    with pytest.raises(BadInput, match=r"ForCheckersOnly\.look cannot .*'Nowhere' is not defined"):
        one_episode(ForCheckersOnly)
    with pytest.raises(BadInput, match=r"tool Untyped\.look cannot be described .*where"):
        one_episode(Untyped)
    with pytest.raises(MemogradError, match="reset of NoText returned list, not a text"):
        one_episode(NoText).reset()
    with pytest.raises(BadInput, match="does not ask for tool calls as JSON"):
        EnvironmentTask(Ledger, chat_template="no tools").episodes(SCENARIO, 1)
    with pytest.raises(BadInput, match="needs chat messages"):
        one_episode(Ledger, Scenario(id="s", messages=(), text="Once"))


def test_a_group_plays_through_qwen3_s_template(qwen3_tokenizer, chat_of, scripted) -> None:
    """Three rollouts in their own ledgers; each is told its own sums."""
    amounts = {0: 2, 1: 5, 2: 4}

    def answer(shown: str, sample: int) -> str:
        assert '"name": "add"' in shown and "The limit is 9." in shown
        if "<tool_response>" not in shown:
            return call("add", amount=amounts[sample])
        return "It is " + shown.rpartition("sum ")[2].partition("\n")[0]

    task = EnvironmentTask(Ledger, chat_template=qwen3_tokenizer.chat_template)
    (rollouts,) = run_in_lockstep(
        scripted(qwen3_tokenizer, answer),
        chat_of(qwen3_tokenizer),
        [task.episodes(SCENARIO, 3)],
        rollout_ids=[["a", "b", "c"]],
        limits=Limits(max_turns=4),
        temperature=1.0,
        max_completion_length=50,
        generator=None,
    )
    assert [rollout.completion for rollout in rollouts] == ["It is 2", "It is 5", "It is 4"]
    assert [rollout.reward for rollout in rollouts] == [0.0, 1.0, 0.0]
    assert {rollout.stop_reason for rollout in rollouts} == {"end"}
    for rollout in rollouts:
        assert rollout.mismatches == {}
        assert [turn.starts_row for turn in rollout.turns] == [True, False]
        roles = [message["role"] for message in rollout.messages]
        assert roles == ["system", "user", "assistant", "tool", "assistant"]
        seen = qwen3_tokenizer.decode(rollout.turns[1].observation_ids)
        assert seen.startswith("\n<|im_start|>user\n<tool_response>\nsum ")


def test_reset_gets_what_it_names() -> None:
    """A row's id, and columns for rewards, are not forced on a `reset` without `**row`."""

    class Named(Ledger):
        def reset(self, limit, answer=None) -> str:
            return f" {limit} {answer}"

    columns = {**SCENARIO.columns, "id": "s1"}
    opening = one_episode(Named, Scenario("s1", SCENARIO.messages, columns)).reset()
    assert opening[-1]["content"] == "Add. 9 5"


class Broken(Ledger):
    """`get_reward` gives what it is told to; reset and a tool give half a character."""

    def reset(self, **row) -> str:
        return "" if row["answer"] else "\ud800"

    def read(self) -> str:
        """Read a file of bytes."""
        return b"\xff".decode(errors="surrogateescape")

    def get_reward(self) -> float:
        raise KeyError("limit")


def test_what_is_raised_names_class_and_line() -> None:
    episode = one_episode(Broken)
    line = Broken.get_reward.__code__.co_firstlineno + 1
    with pytest.raises(
        MemogradError, match=rf"^get_reward of Broken .* in {__file__} line {line}$"
    ):
        now(episode.finish())


def test_text_that_no_tokenizer_takes() -> None:
    episode = one_episode(Broken)
    step = now(episode.step(call("read")))
    assert step.failed_calls == ("raised",)
    assert "UnicodeEncodeError" in step.observation[0]["content"]
    empty = Scenario(id="s2", messages=SCENARIO.messages, columns={"answer": 0})
    with pytest.raises(MemogradError, match="reset of Broken raised UnicodeEncodeError"):
        one_episode(Broken, empty).reset()
