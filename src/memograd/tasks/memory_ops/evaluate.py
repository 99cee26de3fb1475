"""`memograd evaluate` of a policy over memory operations: tables of methods, on what it never saw.

    evaluate_run(Path("runs/x"), OperationsEvaluation(data=[Path("locomo.json")]))

Three parts: every method under every budget of tokens; on raw conversations, which half of the
turns each would keep; and, where a reader is named, what it answers from what each memory found.

Invariant: a run is never measured on a log or conversation that it was trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from memograd.assistant.local_chat import LocalChatModel
from memograd.config import load_memory_settings
from memograd.data.lifelog import Lifelog
from memograd.data.record_files import as_lines
from memograd.data.splits import in_common, told_in
from memograd.errors import BadInput
from memograd.evaluation.judge import Judge
from memograd.evaluation.memory_table import MethodResult, compare_methods, write_table
from memograd.grpo.resume import stored_config
from memograd.grpo.run_folder import RunFolder
from memograd.memory.chat.chat_model import ChatModel
from memograd.memory.configured import configured_chat_model
from memograd.memory.embedders import Embedder
from memograd.memory.embedders.load import open_embedder
from memograd.memory.language import Language
from memograd.memory.manager.trained.files import TrainedHead, load_head
from memograd.tasks.base.progress import console
from memograd.tasks.base.reading import Reader
from memograd.tasks.base.recipe import open_results
from memograd.tasks.memory_ops.baselines.deciders import ByChat
from memograd.tasks.memory_ops.baselines.keep_half import (
    KeptHalf,
    Unit,
    compare_halves,
    half_methods,
)
from memograd.tasks.memory_ops.baselines.measure import (
    MeasuredMethod,
    ReaderAnswers,
    read_and_score,
)
from memograd.tasks.memory_ops.delta_qa import AnswerStandard
from memograd.tasks.memory_ops.material import (
    EmbeddedLog,
    embed_logs,
    evaluation_logs,
    fingerprint,
    logs_of_files,
    training_logs,
)
from memograd.tasks.memory_ops.measure import (
    TRAINED,
    TUNING_LOGS,
    Ground,
    measure_methods,
    methods_of,
    report,
    spread,
    tuning_places,
)
from memograd.tasks.memory_ops.rewards import reward_of
from memograd.tasks.memory_ops.settings import OperationsConfig, OperationsEvaluation

TASK: Final = "memory-ops"
ENDPOINT: Final = "endpoint"
UNITS: Final[tuple[Unit, ...]] = ("tokens", "turns")


def evaluate_run(
    run: Path,
    options: OperationsEvaluation,
    *,
    conversations: Sequence[str] = (),
    embedder: Embedder | None = None,
) -> Path:
    """Measure the head of a run beside the baselines; returns the folder with the tables.

    conversations: ids to measure on, of the data. embedder: by default the run's.

    Raises:
        BadInput: the run has no head yet, was trained on some of what it is to be measured on, or
            its data are no longer what they were.
    """
    folder = RunFolder.open(run)
    if folder.task != TASK:
        raise BadInput(f"{run} is a run of {folder.task or 'another task'}, not {TASK}.")
    config = stored_config(folder, OperationsConfig)
    checkpoint = folder.trained_checkpoint()
    known = training_logs(config)
    stored = folder.read_data()
    if config.data and stored and stored.get("sha256") != fingerprint(known):
        raise BadInput(
            f"The data changed since {run} was trained on it, so nobody can tell what it was: put"
            f" it back, or measure the head alone with --policy {checkpoint}."
        )
    logs = logs_of_files(options.data) if options.data else evaluation_logs(config)
    logs = _chosen(logs, conversations)
    seen = sorted(in_common(map(told_in, known), map(told_in, logs)))
    if seen:
        raise BadInput(
            f"{run} was trained on {', '.join(seen[:5])}; measuring on it would say nothing"
            " about other conversations, so choose others with --conversation."
        )

    def place() -> Path:
        return options.out or open_results(run, options.data)

    return _evaluate(load_head(checkpoint), known, logs, config, options, place, embedder)


def evaluate_head(
    folder: Path,
    options: OperationsEvaluation,
    *,
    conversations: Sequence[str] = (),
    embedder: Embedder | None = None,
) -> Path:
    """Measure a head that came without its run; what it was trained on, nobody can tell.

    Generated logs of held-out forms where no data are given. Raises BadInput when there is no head.
    """
    head = load_head(folder)
    config = OperationsConfig(embedder=head.embedder)
    logs = logs_of_files(options.data) if options.data else evaluation_logs(config)
    spoken = list(dict.fromkeys(log.language for log in logs))  # thresholds are chosen on these
    known = training_logs(config.model_copy(update={"logs": TUNING_LOGS, "languages": spoken}))
    console.print(f"{folder} does not say what it was trained on: see to it that it is not this")
    chosen = _chosen(logs, conversations)

    def place() -> Path:
        return options.out or folder / "evaluation"

    return _evaluate(head, known, chosen, config, options, place, embedder)


def _evaluate(
    head: TrainedHead,
    known: Sequence[Lifelog],
    logs: Sequence[Lifelog],
    config: OperationsConfig,
    options: OperationsEvaluation,
    place: Callable[[], Path],
    embedder: Embedder | None,
) -> Path:
    heads = {TRAINED: head, **_others(options.heads)}
    reward = reward_of(config)
    embedder = embedder or open_embedder(config.embedder)
    for name, one in heads.items():
        if (one.embedder, one.shape.dimension) != (embedder.name, embedder.dimension):
            raise BadInput(
                f"The {name} reads vectors of {one.embedder!r} ({one.shape.dimension} dimensions),"
                f" but {embedder.name!r} ({embedder.dimension}) is used here: compare heads of one"
                " embedder."
            )
    logs = logs[: options.limit_logs]
    # Whoever cannot be asked is found here, before the work begins.
    manager = _chat(options.manager_model) if options.manager_model else None
    reader = _chat(options.reader) if options.reader else None
    judging = _judging(options)
    results = place()
    results.mkdir(parents=True, exist_ok=True)
    judge = None
    if judging is not None and options.judge is not None:
        judge = Judge(judging, options.judge, cache=results / "verdicts.jsonl")
    console.print(f"embedding {len(logs)} logs to measure on")
    tuned_on = [known[place] for place in tuning_places([log.language for log in known])]
    tuning = embed_logs(tuned_on, embedder, view=config.view)
    unseen = embed_logs(logs, embedder, view=config.view)
    turns = embed_logs(logs, embedder, view="turns")
    standard = AnswerStandard.of(config)
    methods = methods_of(heads, tuning, standard)
    if manager is not None:
        with_schema = options.manager_model == ENDPOINT
        methods[f"prompted {manager.name}"] = lambda: ByChat(manager, with_schema=with_schema)
    shares = [None if share == 1 else share for share in options.budgets]
    ground = Ground(unseen, standard, turns, options.ks, reward)
    measured = measure_methods(methods, ground, shares)
    more = _halves(heads, unseen, max(options.ks), results)
    if reader is not None:
        asked = Reader(reader, cache=results / "answers.jsonl")
        more += _answers(measured, logs, asked, judge, options.limit_questions, results)
    report(measured, results, more=more)
    return results


def _halves(
    heads: Mapping[str, TrainedHead], logs: Sequence[EmbeddedLog], top_k: int, folder: Path
) -> list[str]:
    """Which half of the raw turns each method keeps; on logs of real conversations only."""
    real = [log for log in logs if all(one.gold is None for one in log.log.statements)]
    if not any(one.needed for log in real for one in log.probes):
        return []
    parts = []
    for unit in UNITS:
        kept = compare_halves(real, half_methods(heads), top_k=top_k, unit=unit)
        rows = [_half_row(one, top_k) for one in kept]
        written = write_table(compare_methods(rows, baseline=kept[0].name), folder, f"half-{unit}")
        text = written[1].read_text(encoding="utf-8")
        parts.append(f"## Half of the raw turns, counted in {unit}\n\n{text}")
    return parts


def _half_row(kept: KeptHalf, top_k: int) -> MethodResult:
    recalls = {f"evidence recall@{top_k}, {mode}": found for mode, found in kept.recalls.items()}
    groups = {metric: kept.logs for metric in recalls}
    return MethodResult(kept.name, recalls, {"tokens": kept.tokens}, groups)


def _answers(
    measured: Mapping[str, Sequence[MeasuredMethod]],
    logs: Sequence[Lifelog],
    reader: Reader,
    judge: Judge | None,
    limit: int,
    folder: Path,
) -> list[str]:
    """What the reader answers from what each memory found, under the smallest budget."""
    languages: dict[str, Language] = {log.id: _language(log) for log in logs}
    budget, methods = list(measured.items())[-1]
    rows, said = [], []
    for method in methods:
        looked = spread(method.looked, limit)
        seconds, calls = reader.seconds, reader.calls
        found = read_and_score(looked, languages, reader, judge)
        metrics = {**found.scores, f"response quality ({found.measured_by})": found.quality}
        groups = {metric: [one.log for one in looked] for metric in metrics}
        asked = max(1, reader.calls - calls)
        totals = {"seconds an answer": (reader.seconds - seconds) / asked}
        rows.append(MethodResult(method.name, metrics, totals, groups))
        said += _said(method, found, limit)
    (folder / "read.jsonl").write_text(as_lines(said), encoding="utf-8")
    table = compare_methods(rows, baseline=rows[0].name)
    written = write_table(table, folder, stem="answers")
    text = written[1].read_text(encoding="utf-8")
    return [f"## Answers of {reader.name}, memory of {budget} of the tokens\n\n{text}"]


def _said(method: MeasuredMethod, found: ReaderAnswers, limit: int) -> list[dict[str, object]]:
    return [
        {
            "method": method.name,
            "id": one.asked.probe.probe.question.id,
            "question": one.asked.probe.probe.question.text,
            "gold": one.asked.probe.probe.question.answer,
            "answer": answer,
            "found": list(one.texts),
        }
        for one, answer in zip(spread(method.looked, limit), found.answers, strict=True)
    ]


def _language(log: Lifelog) -> Language:
    return "zh" if log.language == "zh" else "en"


def _chosen(logs: Sequence[Lifelog], conversations: Sequence[str]) -> list[Lifelog]:
    missing = set(conversations) - {log.id for log in logs}
    if missing:
        raise BadInput(
            f"There is no conversation {', '.join(sorted(missing))} here; there is"
            f" {', '.join([log.id for log in logs][:10])}."
        )
    return [log for log in logs if not conversations or log.id in conversations]


def _others(given: Sequence[str]) -> dict[str, TrainedHead]:
    found: dict[str, TrainedHead] = {}
    for text in given:
        name, equals, folder = text.partition("=")
        if not (name and equals and folder) or name in found or name == TRAINED:
            raise BadInput(
                f"{text!r} is no further head: write NAME=FOLDER, each name once, such as"
                " supervised=runs/sup/final."
            )
        found[name] = load_head(Path(folder))
    return found


def _chat(name: str) -> ChatModel:
    """The configured endpoint, or a local model."""
    if name != ENDPOINT:
        return LocalChatModel(name)
    endpoint = configured_chat_model(load_memory_settings())
    if endpoint is None:
        raise BadInput("No endpoint is configured: set OPENAI_BASE_URL and OPENAI_MODEL.")
    return endpoint


def _judging(options: OperationsEvaluation) -> ChatModel | None:
    if options.judge is None:
        return None
    if options.reader is None:
        raise BadInput("A judge judges answers: name a reader too.")
    return _chat(ENDPOINT)
