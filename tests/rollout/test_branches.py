"""Every action token is scored once, observations never, and each row knows its rollout."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memograd.rollout import Rollout, Turn
from memograd.rollout.token_tree import grow_trees, rows_of

ids = st.lists(st.integers(0, 2), max_size=4).map(tuple)
prompts = st.lists(st.integers(0, 2), min_size=1, max_size=5).map(tuple)


@st.composite
def turns(draw: st.DrawFn) -> tuple[Turn, ...]:
    """Up to four turns, the first of which starts a row; log-probabilities are drawn too."""
    made = []
    for place in range(draw(st.integers(1, 4))):
        starts = place == 0 or draw(st.booleans())
        action = draw(ids)
        logprobs = [draw(st.floats(-9, -0.125, width=32)) for _ in action]
        observation = draw(prompts if starts else ids)
        made.append(Turn(observation, action, np.array(logprobs, np.float32), "end", starts))
    return tuple(made)


@st.composite
def groups(draw: st.DrawFn) -> list[list[Rollout]]:
    several = st.lists(st.lists(turns(), min_size=1, max_size=4), min_size=1, max_size=3)
    return [[Rollout("r", made, "") for made in group] for group in draw(several)]


@given(groups())
def test_trees_hold_exactly_the_rows(made: list[list[Rollout]]) -> None:
    branches = grow_trees(made)
    found: dict[int, list] = {}
    for tree, rollouts, logprobs in zip(
        branches.trees, branches.rollouts_of_tree, branches.old_logprobs, strict=True
    ):
        for row, rollout in enumerate(rollouts):
            sequence = (*tree.prompt, *tree.branch(row))
            scored = [False] * len(tree.prompt) + tree.scored[row].tolist()
            old = [0.0] * len(tree.prompt) + logprobs[row].tolist()
            found.setdefault(rollout, []).append((sequence, scored, old))
    rollouts = [rollout for group in made for rollout in group]
    for number, rollout in enumerate(rollouts):
        expected = [
            (
                (*row.prompt, *row.ids),
                [False] * len(row.prompt) + row.scored.tolist(),
                [0.0] * len(row.prompt) + row.logprobs.tolist(),
            )
            for row in rows_of(rollout)
        ]
        assert found[number] == expected  # in this order
        scored_tokens = sum(sum(scored) for _, scored, _ in found[number])
        assert scored_tokens == rollout.tokens


@given(groups())
def test_a_tree_belongs_to_one_group(made: list[list[Rollout]]) -> None:
    group_of = [index for index, group in enumerate(made) for _ in group]
    for rollouts in grow_trees(made).rollouts_of_tree:
        assert len({group_of[rollout] for rollout in rollouts}) == 1


def turn(observation: tuple[int, ...], action: tuple[int, ...], *, starts_row: bool) -> Turn:
    logprobs = -np.arange(1, len(action) + 1, dtype=np.float32)
    return Turn(observation, action, logprobs, "end", starts_row)


def test_equal_beginnings_are_shared_observations_included() -> None:
    first = turn((1, 2, 3), (4, 5), starts_row=True)
    rollouts = [
        Rollout("a", (first, turn((6, 7), (8,), starts_row=False)), ""),
        Rollout("b", (first, turn((6, 7), (9,), starts_row=False)), ""),
        Rollout("c", (first, turn((6, 1), (8,), starts_row=False)), ""),
    ]
    branches = grow_trees([rollouts])
    (tree,) = branches.trees
    # Nodes: the root, 4 5, then 6 once, 7 and 1, and three last actions.
    assert len(tree.tokens_N) == 1 + 2 + 1 + 2 + 3
    assert tree.scored[0].tolist() == [True, True, False, False, True]
    assert branches.old_logprobs[0][0].tolist() == [-1, -2, 0, 0, -1]


def test_a_rewritten_history_joins_the_tree_that_it_begins_like() -> None:
    """The rewritten prompt quotes the first action; there, the same node is not scored."""
    rewritten = (1, 2, 4, 6, 6)
    rollout = Rollout(
        "a",
        (turn((1, 2), (4, 5), starts_row=True), turn(rewritten, (7,), starts_row=True)),
        "",
    )
    other = Rollout("b", (turn((3, 2), (4,), starts_row=True),), "")
    branches = grow_trees([[rollout, other], [other]])
    assert branches.rollouts_of_tree == ((0, 0), (1,), (2,))
    tree = branches.trees[0]
    assert [tree.branch(row) for row in range(2)] == [(4, 5), (4, 6, 6, 7)]
    assert tree.branches[0][0] == tree.branches[1][0]
    assert [own.tolist() for own in tree.scored] == [[True, True], [False, False, False, True]]
