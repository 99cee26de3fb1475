"""Our tasks and rewards in other trainers: TRL, verl, verifiers (`docs/interop.md`).

Rows are those of `memograd train text` and of agents (`prompt` and columns). A reward is scored by
the function that our own trainer calls, on the conversation in our form: a call stands in the
assistant's text. Invariant: a rollout is worth the same there as here.
"""
