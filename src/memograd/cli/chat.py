"""`memograd chat`: a conversation that remembers, at the terminal or through a pipe.

Lines that begin with a slash look into the memory instead of talking. The conversation itself is
`memograd.assistant.AssistantConversation`. The memory and the model arrive when the command runs.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from memograd.cli import given, show
from memograd.cli.help import epilog
from memograd.errors import MemogradError

if TYPE_CHECKING:
    from memograd.assistant import AssistantConversation, Reply
    from memograd.memory import Memory

app = typer.Typer()

COMMANDS = """\
  /memory     what is remembered
  /why        what was recalled and written for the last answer
  /good /bad  what you think of the last answer; /bad TEXT says the right one
  /forget ID  forget a memory
  /help       this list
  /quit       end (or Ctrl-D)"""


@app.command(
    epilog=epilog(
        "Examples:\n"
        "  memograd chat --user alice\n"
        "  memograd chat --user 小红 --show\n"
        '  echo "Where do I live?" | memograd chat --user alice',
        f"While talking:\n{COMMANDS}",
        "The model is the endpoint of OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL, else a"
        " small\nlocal one.",
    )
)
def chat(
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Who is talking.")],
    agent: given.Agent = None,
    run: given.Run = None,
    always: Annotated[
        bool, typer.Option("--show", help="Show after every answer what was recalled and written.")
    ] = False,
    policy: given.Policy = None,
    defer_below: given.DeferBelow = None,
    path: given.Where = None,
) -> None:
    """Talk with a model that remembers."""
    from memograd.assistant import AssistantConversation, LocalChatModel, choose_chat_model
    from memograd.memory import Memory, Scope

    settings = given.settings(path, policy=policy, defer_below=defer_below)
    ids = given.ids(user, agent, run)
    scope = Scope(**ids)
    model = choose_chat_model(settings)
    with Memory.open(settings=settings) as memory:
        typer.echo(f"{model.name} remembers in {settings.path}; /help lists what else.", err=True)
        if isinstance(model, LocalChatModel):
            typer.echo("The model is loaded for its first answer, which takes a while.", err=True)
        _talk(AssistantConversation(memory, model, scope), memory, ids, always)


def _talk(talk: AssistantConversation, memory: Memory, ids: given.Ids, always: bool) -> None:
    last: Reply | None = None
    while (line := _read_line()) is not None:
        word, _, rest = line.strip().partition(" ")
        try:
            if word == "/quit":
                return
            if word == "/memory":
                show.items(memory.get_all(**ids)["results"])
            elif word == "/why":
                _explain(last)
            elif word == "/forget":
                memory.delete(rest.strip())
                typer.echo("Forgotten.")
            elif word in ("/good", "/bad"):
                _judge(memory, last, word.removeprefix("/"), rest.strip())
            elif word.startswith("/"):
                typer.echo(COMMANDS)
            elif word:
                last = talk.reply(line)
                typer.echo(show.plain(last.text))
                if always:
                    _explain(last)
        except MemogradError as error:  # one turn failed; the conversation goes on
            typer.echo(f"memograd: {error}", err=True)


def _read_line() -> str | None:
    """The next line; None at the end of the input."""
    at_terminal = sys.stdin.isatty()
    if at_terminal and importlib.util.find_spec("readline"):
        import readline  # noqa: F401 (lets `input` edit the line)
    try:
        return input("> " if at_terminal else "")
    except EOFError:
        return None


def _judge(memory: Memory, reply: Reply | None, verdict: str, correction: str) -> None:
    if reply is None or reply.answer_id is None:
        typer.echo("There is no answer to judge.")
        return
    memory.feedback(reply.answer_id, correction if verdict == "bad" and correction else verdict)
    typer.echo("Thank you.")


def _explain(reply: Reply | None) -> None:
    from memograd.memory.results import hit_result, item_result, turn_result

    if reply is None:
        typer.echo("Nothing was said yet.")
        return
    recalled = reply.recalled
    typer.echo("Recalled:")
    if not (recalled.core or recalled.items or recalled.turns):
        typer.echo("  nothing")
    for item in recalled.core:
        typer.echo(f"  {show.plain(item_result(item)['memory'])}\n    Always in mind.")
    show.reasons([hit_result(hit, explain=True) for hit in recalled.items])
    show.reasons([turn_result(hit, explain=True) for hit in recalled.turns])
    typer.echo("Written:")
    show.operations(reply.operations)
