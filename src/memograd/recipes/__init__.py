"""Whole jobs, as the command line runs them and as a Python user can call them.

The floor above every room but the command line: a recipe puts rooms together and holds no
algorithm.
"""
