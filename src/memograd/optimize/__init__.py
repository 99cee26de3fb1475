"""Prompts that are optimised instead of weights, by DSPy's own optimisers over the gateway."""
