"""Training policies that choose among a few actions: GRPO, REINFORCE, PPO, DQN, supervised.

`trainer` walks through episodes and has the base class and GRPO, `algorithms` the others;
`head` is the network.
"""
