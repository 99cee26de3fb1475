"""Sampling by inference servers (vLLM) while this process learns; `docs/sampler.md` is the guide.

server.py          one server over HTTP: token ids in, token ids and log-probabilities out
weights_server.py  one whose own weights are exchanged, and that says which drew what
pool.py            several of them: work goes to whoever is there, and is done once
adapters.py        versions of an adapter or of all weights: written whole, never under an old name
sampler.py         what the policy draws from: publishes versions, asks the pool
probe.py           what a server must get right before it is trained from, and why it does not
start.py           `vllm serve`, started and stopped with the run
"""
