"""The gateway: what it adds to a call, what batching gains, and whether a trace can be lost.

    python benchmarks/gateway.py overhead   --calls 200 [--api responses]
    python benchmarks/gateway.py throughput --model smollm2-135m-instruct
    python benchmarks/gateway.py constrained --model smollm2-135m-instruct
    python benchmarks/gateway.py exactness  --model smollm2-135m-instruct --traces 200
    python benchmarks/gateway.py faults     --calls 5000

One JSON line each. `--model tiny` (the default but for throughput) is a random model of two layers,
made on the spot, whose own time is small.

    overhead    milliseconds of a call over HTTP with its trace written, client included, beside
                those of the same request given to the engine directly, alternating; `added` is
                the median difference of neighbours, `added_cpu` of processor time
    throughput  answer tokens a second at 1, 8 and 32 concurrent clients, and of `policy.sample`
                called for one prompt after another, in turns, medians of --rounds; `gain_at_8` is
                how much more 8 clients get than one prompt after another, by the clock and by
                processor time, which other load on the machine changes less
    constrained tokens a second of one client whose answers are held to a JSON schema, beside free
                ones of as many tokens, in turns, medians of --rounds
    exactness   multi-turn traces: how many prompts begin with the ids seen and drawn before them
                (all must), and how many the chat template, asked to write the conversation again,
                would have tokenised otherwise
    faults      concurrent calls, a tenth of which hang up at a random moment, with the server
                killed (kill -9) and started again halfway: `lost` are answers that a client got and
                no trace has, `crossed` are traces with another call's words
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import torch

from memograd.config import LoraConfig
from memograd.gateway.app import create_app
from memograd.gateway.conversation import TracedConversation
from memograd.gateway.local import AnswerSampling, LocalBackend
from memograd.gateway.protocol import ChatRequest
from memograd.gateway.store import TraceStore
from memograd.policy.language_model import LanguageModel
from memograd.web.running import running

WHAT = ("overhead", "throughput", "constrained", "exactness", "faults")
APIS = {"chat": ("chat/completions", "messages"), "responses": ("responses", "input")}
WORDS = ["river", "stone", "apple", "doctor", "winter", "music", "garden", "letter", "market"]


def tiny_model(folder: Path) -> str:
    """A random model of two layers with a byte tokenizer and a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {"<|end|>": 0, "<|start|>": 1}
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary |= {symbol: index + 2 for index, symbol in enumerate(letters)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|end|>", additional_special_tokens=["<|start|>"]
    )
    fast.chat_template = (
        "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}"
        "<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
        initializer_range=0.3,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return str(folder)


def question(number: int) -> list[dict[str, str]]:
    """A chat that no other begins like."""
    words = random.Random(number).choices(WORDS, k=24)
    return [{"role": "user", "content": f"{number}: tell me about {' '.join(words)}"}]


def open_backend(model: str, tokens: int) -> LocalBackend:
    policy = LanguageModel.load(model, lora=LoraConfig(r=8), device="cpu")
    return LocalBackend(policy, sampling=AnswerSampling(max_tokens=tokens))


def overhead(model: str, calls: int, folder: Path, api: str) -> dict[str, Any]:
    """One client; the engine is asked for the same through the backend, without HTTP or store."""
    backend = open_backend(model, tokens=8)
    store = TraceStore(f"sqlite:///{folder}/traces.db")
    times: dict[str, list[float]] = {"gateway": [], "direct": []}
    cpu: dict[str, list[float]] = {"gateway": [], "direct": []}
    loop = asyncio.new_event_loop()
    with running(create_app(backend, store)) as url, httpx.Client(timeout=600) as client:
        made = client.post(f"{url}/rollout", json={}).json()
        headers = {"Authorization": f"Bearer {made['api_key']}"}
        for number in range(calls + 10):
            asked = question(number)[0]["content"]
            for side in ("gateway", "direct") if number % 2 else ("direct", "gateway"):
                # Prompts of one length that share nothing, or the second would cost less.
                messages = [{"role": "user", "content": f"{side[0]}{side[0]} {asked}"}]
                body = {"messages": messages, "seed": number, "temperature": 1.0}
                began, spent = time.perf_counter(), time.process_time()
                if side == "gateway":
                    path, said = APIS[api]
                    sent = {"seed": number, "temperature": 1.0, said: messages}
                    path = f"{made['base_url']}/{path}"
                    client.post(path, json=sent, headers=headers).raise_for_status()
                else:
                    request = ChatRequest.model_validate(body)
                    loop.run_until_complete(backend.prepare(request, TracedConversation()).run(0))
                times[side].append(time.perf_counter() - began)
                cpu[side].append(time.process_time() - spent)
    backend.close()

    def median(found: list[float]) -> float:
        return 1000 * statistics.median(found[10:])  # the first calls warm everything up

    def added(found: dict[str, list[float]]) -> float:
        """Median of the differences of neighbours, which other load on the machine hits alike."""
        pairs = zip(found["gateway"], found["direct"], strict=True)
        return median([one - other for one, other in pairs])

    return {
        "api": api,
        "calls": calls,
        "gateway_ms": round(median(times["gateway"]), 2),
        "direct_ms": round(median(times["direct"]), 2),
        "added_ms": round(added(times), 2),
        "added_cpu_ms": round(added(cpu), 2),
    }


def throughput(model: str, folder: Path, tokens: int, rounds: int) -> dict[str, Any]:
    """All answers have `tokens` tokens, so that only the number of clients differs."""
    backend = open_backend(model, tokens)
    backend.engine.rest()
    policy = backend.engine.policy
    type(policy).end_ids = property(lambda self: frozenset())  # type: ignore[assignment]
    backend.engine._sampler._end_ids = frozenset()
    speeds: dict[str, list[float]] = {}
    by_cpu: dict[str, list[float]] = {}
    fresh = itertools.count()

    def one_at_a_time(url: str, clients: int, calls: int) -> None:
        for number in itertools.islice(fresh, calls):
            prompt = policy.encode(question(number))  # type: ignore[arg-type]
            policy.sample(
                [prompt], num_generations=1, temperature=1.0, max_completion_length=tokens
            )

    def through_gateway(url: str, clients: int, calls: int) -> None:
        backend.engine.resume()
        asyncio.run(ask_all(url, clients, list(itertools.islice(fresh, calls))))
        backend.engine.rest()

    store = TraceStore(f"sqlite:///{folder}/traces.db")
    with running(create_app(backend, store)) as url:
        for _ in range(rounds):
            for name, side, clients, calls in (
                ("direct_one_at_a_time", one_at_a_time, 1, 4),
                ("clients_1", through_gateway, 1, 4),
                ("clients_8", through_gateway, 8, 32),
                ("clients_32", through_gateway, 32, 64),
            ):
                began, spent = time.perf_counter(), time.process_time()
                side(url, clients, calls)
                seconds, cpu = time.perf_counter() - began, time.process_time() - spent
                speeds.setdefault(name, []).append(calls * tokens / seconds)
                by_cpu.setdefault(name, []).append(calls * tokens / cpu)
    backend.close()

    def gain(found: dict[str, list[float]]) -> float:
        pairs = zip(found["clients_8"], found["direct_one_at_a_time"], strict=True)
        return round(statistics.median(eight / alone for eight, alone in pairs), 2)

    return {
        "tokens_an_answer": tokens,
        **{name: round(statistics.median(found), 1) for name, found in speeds.items()},
        "gain_at_8": gain(speeds),
        "gain_at_8_by_cpu": gain(by_cpu),
    }


async def ask_all(url: str, clients: int, questions: list[int]) -> None:
    """A call for each question, by so many clients, each a rollout."""
    numbers = iter(questions)

    async def one() -> None:
        async with httpx.AsyncClient(timeout=600) as client:
            made = (await client.post(f"{url}/rollout", json={})).json()
            headers = {"Authorization": f"Bearer {made['api_key']}"}
            for number in numbers:
                body = {"messages": question(number), "temperature": 1.0}
                path = f"{made['base_url']}/chat/completions"
                (await client.post(path, json=body, headers=headers)).raise_for_status()

    await asyncio.gather(*(one() for _ in range(clients)))


def constrained(model: str, tokens: int, rounds: int) -> dict[str, Any]:
    """A list of notes that is never long enough, so that every answer has `tokens` tokens."""
    note = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    schema = {"type": "array", "items": note, "minItems": 500}
    form = {"type": "json_schema", "json_schema": {"name": "notes", "schema": schema}}
    backend = open_backend(model, tokens)
    speeds: dict[str, list[float]] = {"free": [], "held": []}
    loop = asyncio.new_event_loop()
    for number in range(rounds + 1):
        for name, fields in (("free", {}), ("held", {"response_format": form})):
            body = {"messages": question(number), "temperature": 1.0, **fields}
            request = ChatRequest.model_validate(body)
            drawn, seed, spent = 0, 0, 0.0
            while drawn < tokens:  # a free answer may end early
                began = time.process_time()
                prepared = backend.prepare(request, TracedConversation())
                drawn += loop.run_until_complete(prepared.run(seed)).completion_tokens
                spent += time.process_time() - began
                seed += 1
            speeds[name].append(drawn / spent)
    backend.close()
    medians = {name: statistics.median(found[1:]) for name, found in speeds.items()}
    return {
        "tokens_an_answer": tokens,
        **{f"{name}_by_cpu": round(found, 1) for name, found in medians.items()},
        "share": round(medians["held"] / medians["free"], 3),
    }


def exactness(model: str, traces: int, folder: Path, turns: int, tokens: int) -> dict[str, Any]:
    """Conversations of several turns, many at once."""
    backend = open_backend(model, tokens)
    store = TraceStore(f"sqlite:///{folder}/traces.db")

    async def talk(client: httpx.AsyncClient, url: str, number: int) -> str:
        made = (await client.post(f"{url}/rollout", json={"seed": number})).json()
        headers = {"Authorization": f"Bearer {made['api_key']}"}
        messages: list[dict[str, Any]] = list(question(number))
        for turn in range(turns):
            body = {"messages": messages, "temperature": 1.0}
            path = f"{made['base_url']}/chat/completions"
            answer = (await client.post(path, json=body, headers=headers)).json()
            messages.append(answer["choices"][0]["message"])
            messages.append({"role": "user", "content": f"And then? {turn}"})
        return str(made["id"])

    async def talk_all(url: str) -> list[str]:
        room = asyncio.Semaphore(32)

        async def one(number: int) -> str:
            async with room:
                return await talk(client, url, number)

        async with httpx.AsyncClient(timeout=600) as client:
            return list(await asyncio.gather(*(one(number) for number in range(traces))))

    with running(create_app(backend, store)) as url:
        ids = asyncio.run(talk_all(url))
    continued = exact = rewritten = otherwise = 0
    policy = backend.engine.policy
    for rollout_id in ids:
        calls = store.calls(rollout_id)
        for call, following in itertools.pairwise(calls):
            held = (*(call.prompt_ids or ()), *(call.choices[0].token_ids or ()))
            begins = (following.prompt_ids or ())[: len(held)] == held
            continued += 1
            exact += begins
            rewritten += not begins and following.mismatch in ("history", "whitespace")
            again = tuple(policy.encode(list(following.messages)))  # type: ignore[arg-type]
            otherwise += again != following.prompt_ids
    backend.close()
    return {
        "traces": len(ids),
        "continued_prompts": continued,
        "exact_prefix": exact,
        "rewritten_by_template": rewritten,
        "retokenised_otherwise": otherwise,
    }


def faults(model: str, calls: int, folder: Path, clients: int = 64) -> dict[str, Any]:
    """The server is the command line's, so that it can be killed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store_url = f"sqlite:///{folder}/traces.db"
    command = [sys.executable, "-m", "memograd", "gateway", "--model", model, "--device", "cpu"]
    command += ["--port", str(port), "--store", store_url, "--max-tokens", "6"]
    url = f"http://127.0.0.1:{port}"
    server = started(command, url)
    told: dict[str, tuple[str, str]] = {}
    hung_up = failed = restarts = 0
    begun = 0

    async def client_of(number: int, source: random.Random) -> None:
        nonlocal hung_up, failed, begun
        async with httpx.AsyncClient(timeout=120) as client:
            made: dict[str, Any] | None = None
            tries = 0
            while begun < calls:
                begun, tries = begun + 1, tries + 1
                mark = f"call {tries} of client {number}"
                try:
                    if made is None or source.random() < 0.2:
                        made = (await client.post(f"{url}/rollout", json={})).json()
                    headers = {"Authorization": f"Bearer {made['api_key']}"}
                    body = {"messages": [{"role": "user", "content": mark}]}
                    asking = client.post(
                        f"{made['base_url']}/chat/completions", json=body, headers=headers
                    )
                    if source.random() < 0.1:
                        await asyncio.wait_for(asking, source.random() * 0.05)
                    else:
                        answer = await asking
                        answer.raise_for_status()
                        text = answer.json()["choices"][0]["message"]["content"]
                        told[mark] = (made["id"], text)
                except TimeoutError:
                    hung_up += 1
                except httpx.HTTPError:  # the server is down: this call is made again
                    failed += 1
                    begun -= 1
                    await asyncio.sleep(0.5)

    async def all_clients() -> None:
        nonlocal server, restarts
        working = [
            asyncio.ensure_future(client_of(number, random.Random(number)))
            for number in range(clients)
        ]
        while begun < calls // 2:
            await asyncio.sleep(0.01)
        server.send_signal(signal.SIGKILL)
        server.wait()
        server = await asyncio.to_thread(started, command, url)
        restarts += 1
        await asyncio.gather(*working)

    began = time.perf_counter()
    try:
        asyncio.run(all_clients())
    finally:
        server.kill()
        server.wait()
    seconds = time.perf_counter() - began
    store = TraceStore(store_url)
    kept: dict[str, tuple[str, str]] = {}
    twice = 0
    for record, found in store.traces():
        for call in found:
            mark = call.messages[0]["content"]
            twice += mark in kept
            kept[mark] = (record.id, call.choices[0].text)
    return {
        "calls": begun,
        "answered": len(told),
        "hung_up": hung_up,
        "failed_and_repeated": failed,
        "kills": restarts,
        "lost": sum(mark not in kept for mark in told),
        "crossed": twice + sum(mark in kept and kept[mark] != said for mark, said in told.items()),
        "seconds": round(seconds, 1),
    }


def started(command: list[str], url: str) -> subprocess.Popen[bytes]:
    """A server that answers."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while True:
        try:
            httpx.get(f"{url}/health", timeout=5)
            return process
        except httpx.HTTPError:
            if process.poll() is not None:
                raise SystemExit("the gateway did not start") from None
            time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--api", choices=sorted(APIS), default="chat", help="overhead: which")
    parser.add_argument("--traces", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=64, help="throughput: of an answer")
    parser.add_argument("--rounds", type=int, default=3, help="throughput: medians of so many")
    parser.add_argument("--turns", type=int, default=3, help="exactness: of a trace")
    parser.add_argument("--answer", type=int, default=12, help="exactness: tokens of an answer")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = tiny_model(folder / "tiny") if given.model == "tiny" else given.model
        if given.what == "overhead":
            found = overhead(model, given.calls, folder, given.api)
        elif given.what == "throughput":
            found = throughput(model, folder, given.tokens, given.rounds)
        elif given.what == "constrained":
            found = constrained(model, given.tokens, given.rounds)
        elif given.what == "exactness":
            found = exactness(model, given.traces, folder, given.turns, given.answer)
        else:
            found = faults(model, given.calls, folder)
    print(json.dumps({"benchmark": f"gateway {given.what}", "model": given.model, **found}))


if __name__ == "__main__":
    main()
