"""oneDNN's linear layer is torch's: values, gradients, and which layers it takes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

from memograd.policy.loading import OneDNNLinear, speed_up_linears

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN"
)


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(0, 6), max_size=3),
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    bias=st.booleans(),
    frozen=st.booleans(),
    strided=st.booleans(),
)
def test_values_and_gradients_are_those_of_a_plain_linear_layer(
    shape, sizes, bias, frozen, strided
) -> None:
    torch.manual_seed(0)
    ours = torch.nn.Linear(*sizes, bias=bias)
    theirs = torch.nn.Linear(*sizes, bias=bias).double()
    theirs.load_state_dict(ours.state_dict())
    assert speed_up_linears(ours) == 1 and isinstance(ours, OneDNNLinear)
    for layer in (ours, theirs):
        layer.weight.requires_grad_(not frozen)
    stored = torch.randn(*shape, sizes[0] * (2 if strided else 1))
    inputs = stored[..., : sizes[0]].requires_grad_()
    exact = inputs.detach().double().requires_grad_()
    results = [(ours(inputs), inputs, ours), (theirs(exact), exact, theirs)]
    for output, *_ in results:
        (output * torch.arange(output.numel()).reshape(output.shape).cos()).sum().backward()
    for mine, right in zip(*[(o, i.grad, m.weight.grad) for o, i, m in results], strict=True):
        assert (mine is None) == (right is None)
        if right is not None:
            torch.testing.assert_close(mine.double(), right, atol=2e-5, rtol=1e-5)


def test_a_model_answers_and_learns_as_before(tiny_model_folder) -> None:
    ids = torch.randint(2, 250, (3, 17), generator=torch.Generator().manual_seed(0))
    results = []
    for fast in (False, True):
        model = AutoModelForCausalLM.from_pretrained(tiny_model_folder, dtype=torch.float32)
        if fast:
            # Two layers of seven linears, and the output layer.
            assert speed_up_linears(model) == 15
        output = model(ids, labels=ids)
        output.loss.backward()
        gradients = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
        results.append((output.logits, gradients, list(model.state_dict())))
    (logits, gradients, names), (fast_logits, fast_gradients, fast_names) = results
    torch.testing.assert_close(fast_logits, logits, atol=1e-4, rtol=1e-4)
    assert (fast_gradients - gradients).norm() / gradients.norm() < 1e-5
    assert fast_names == names


def test_layers_of_other_types_stay_what_they_are(tiny_model) -> None:
    assert speed_up_linears(tiny_model) == 0  # float64
    assert speed_up_linears(torch.nn.Linear(2, 2).bfloat16()) == 0


def test_a_layer_converted_later_to_another_type_still_works() -> None:
    layer = torch.nn.Linear(4, 3)
    speed_up_linears(layer)
    inputs = torch.randn(2, 4)
    expected = layer(inputs).double()
    torch.testing.assert_close(layer.double()(inputs.double()), expected, atol=1e-6, rtol=1e-5)
