"""Training policies that choose among a few actions: GRPO, REINFORCE, PPO, DQN, supervised.

`experience` walks through episodes, `trainer` has the base class and GRPO, `algorithms` the others;
`head` is the network.
"""
