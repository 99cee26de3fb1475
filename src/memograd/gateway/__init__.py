"""The gateway: an OpenAI-compatible server in front of a policy that writes down every call.

    agent ──OPENAI_BASE_URL──> app ──> backend: the local policy (engine) or another server
                                │
                                └──> trace store ──> rollouts with token ids ──> the trainer

An agent of any framework becomes trainable unchanged: it is given a base URL and an API key of its
own for each attempt (a *rollout*), every call it makes is captured with token ids and
log-probabilities, and its reward ends the rollout. `store` keeps the traces, `traces_to_rollouts`
makes training data of them, `agents` runs agents, `drawing` lets the trainer do so.

Its modules are imported by their names: what needs FastAPI, torch or httpx arrives with them.
"""
