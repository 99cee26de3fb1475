"""`delete_all_memories`, which the user must say yes to.

The question goes to the user through the client (elicitation), so no text that a model read can
make it happen. Invariant: **without a yes of the user nothing is forgotten**, whatever the client
can and the model says. The count is part of the question, so a yes is a yes to what was there.
"""
# No `from __future__ import annotations` here: the annotation of `answer` names a local function.

from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import AcceptedElicitation, Elicit, ElicitationResult, Resolve
from mcp.types import CallToolResult
from pydantic import BaseModel, Field

from memograd.serve.keys import owner_field
from memograd.serve.mcp.recalled import Done, done
from memograd.serve.mcp.tools import NO_IDS, Asking, MemoryFor, told_of
from memograd.serve.refusals import Forbidden


class Confirmation(BaseModel):
    """What the user is asked for."""

    confirm: bool = Field(title="Forget everything", description="Yes, forget all of it.")


def add_forget_all(server: MCPServer[Any], memory_for: MemoryFor) -> None:
    """Give the server its tool. memory_for: the memory that a call may see."""

    def ask_the_user(asking: Asking) -> Confirmation | Elicit[Confirmation]:
        memory = memory_for(asking)
        if memory.identity.owner is None:
            raise Forbidden("This key opens everybody's memory, which no tool may forget.")
        count = len(memory.get_all(ids=NO_IDS))
        if count == 0:
            return Confirmation(confirm=True)
        capabilities = asking.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            raise ToolError(
                "Nothing was forgotten: the user must say yes to it, and this client cannot ask."
                " They can do it themselves by memograd memory forget --all."
            )
        whose = owner_field(memory.identity.owner)[1]
        return Elicit(f"Forget all {count} memories of {whose!r}?", Confirmation)

    @server.tool(
        title="Forget everything",
        annotations=told_of("Forget everything", destroys=True, repeatable=True),
    )
    def delete_all_memories(
        asking: Asking,
        answer: Annotated[ElicitationResult[Confirmation], Resolve(ask_the_user)],
    ) -> Annotated[CallToolResult, Done]:
        """Forget everything that is remembered. The user is asked first."""
        if not isinstance(answer, AcceptedElicitation) or not answer.data.confirm:
            return done("Nothing was forgotten: the user did not say yes.", 0)
        deleted = memory_for(asking).delete_all(ids=NO_IDS)["deleted"]
        return done(f"{deleted} memories were forgotten.", deleted)
