"""House contract 1: a tree's branches are exactly the token ids that went in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memograd.errors import BadInput
from memograd.rollout import TokenTree

# Few distinct tokens, so that shared beginnings, equal answers and prefixes of each other are
# common.
tokens = st.lists(st.integers(0, 3), max_size=6)
prompts = st.lists(st.integers(0, 9), min_size=1, max_size=8)


@given(prompts, st.lists(tokens, min_size=1, max_size=8))
def test_prompt_and_branches_are_what_went_in(prompt: list[int], answers: list[list[int]]) -> None:
    tree = TokenTree.from_branches(prompt, answers)
    assert list(tree.prompt) == prompt
    assert [list(tree.branch(row)) for row in range(len(answers))] == answers


@given(prompts, st.lists(tokens, min_size=1, max_size=8))
def test_every_distinct_prefix_is_one_node(prompt: list[int], answers: list[list[int]]) -> None:
    tree = TokenTree.from_branches(prompt, answers)
    prefixes = {tuple(answer[:end]) for answer in answers for end in range(1, len(answer) + 1)}
    assert len(tree.tokens_N) == 1 + len(prefixes)
    proper = {prefix[:-1] for prefix in prefixes}
    assert len(tree.inner_M) == len(proper)
    assert tree.tree_tokens == len(prompt) - 1 + len(proper)
    assert tree.rows_tokens == sum(len(prompt) + len(answer) for answer in answers)


@given(prompts, st.lists(tokens, min_size=1, max_size=8))
def test_parents_precede_children_and_ancestors_are_the_way_to_the_root(
    prompt: list[int], answers: list[list[int]]
) -> None:
    tree = TokenTree.from_branches(prompt, answers)
    assert tree.parents_N[0] == -1
    assert (tree.parents_N[1:] < np.arange(1, len(tree.parents_N))).all()
    for row, node in enumerate(tree.inner_M):
        way = []
        while node != -1:
            way.append(int(node))
            node = tree.parents_N[node]
        assert sorted(way) == tree.inner_M[tree.ancestors_MM[row]].tolist()
        assert tree.depths_N[way[0]] == len(way) - 1


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(BadInput, match="empty prompt"):
        TokenTree.from_branches([], [[1]])


def test_every_token_is_scored_unless_it_is_said_otherwise() -> None:
    answers = [[5, 6, 7], [5, 6], []]
    plain = TokenTree.from_branches([1], answers)
    assert [own.tolist() for own in plain.scored] == [[True] * 3, [True] * 2, []]
    masked = TokenTree.from_branches([1], answers, [[True, False, True], [False, False], []])
    assert [masked.branch(row) for row in range(3)] == [(5, 6, 7), (5, 6), ()]
    # Nodes 1 and 3 are the tokens 5 and 7; 6 is scored in no branch, 5 in one of its two.
    assert masked.scored_nodes.tolist() == [1, 3]


def test_a_mask_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one bool for each token of branches of \[2, 1\]"):
        TokenTree.from_branches([1], [[5, 6], [7]], [[True, False], [True, False]])
