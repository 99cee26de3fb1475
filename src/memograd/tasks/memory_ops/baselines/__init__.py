"""Measuring policies over memory operations beside their baselines.

`deciders` are the policies, `measure` lets them walk through logs.
"""
