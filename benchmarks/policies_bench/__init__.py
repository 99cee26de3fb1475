"""The parts of `benchmarks/memory_policies.py`.

`results` keeps what is finished in a file and sums it up over seeds; `learning` trains and measures
on generated logs, and draws the curves; `transfer` and `other_data` measure on other people's
conversations; `speed` times. `--only` chooses among them.
"""
