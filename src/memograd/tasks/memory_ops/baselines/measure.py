"""How well deciders keep memories: every question asked at its time, every decision beside gold.

Each decider walks through the same logs with the same budget of tokens. `read_and_score` lets a
chat model answer from what a memory found: evidence recall says what could be answered, a reader
says what is. A small reader is wrong about most of it, whatever the memory, so its scores stand
beside recall and never in place of it.

Invariants: measuring changes nothing that a decider sees, and a gold follower has accuracy 1; a
question with several right answers gets the best score among them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memograd.data import Question
from memograd.evaluation.confusion import ChosenOp, Confusion, compare_operations
from memograd.evaluation.judge import AnsweredQuestion, Judge
from memograd.evaluation.metrics import ANSWER_METRICS, answer_scores
from memograd.memory.language import Language
from memograd.memory.manager.trained.observation import operation_of
from memograd.memory.records.operations import OpKind
from memograd.memory.search import retrieve
from memograd.rewards import CATEGORIES
from memograd.tasks.base.reading import Reader
from memograd.tasks.memory_ops.baselines.deciders import MakeDecider
from memograd.tasks.memory_ops.delta_qa import AnswerStandard, recalled
from memograd.tasks.memory_ops.material import EmbeddedLog
from memograd.tasks.memory_ops.rewards import OperationReward
from memograd.tasks.memory_ops.walk import Walk, WalkQuestion


@dataclass(frozen=True)
class Looked:
    """A question put to a memory.

    log: id of the log. asked: how it went. recalls: share of the needed evidence among the best k,
    by k. texts: of the items that a reader would see, best first.
    """

    log: str
    asked: WalkQuestion
    recalls: Mapping[int, float]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class DecidedBesideGold:
    """A decision beside gold.

    told: the kind that the log's gold operation has; in this state `gold` may be another: an
    UPDATE of what is not remembered is an ADD. failed: none could be had, so nothing was done.
    """

    log: str
    told: OpKind
    gold: ChosenOp
    chosen: ChosenOp
    failed: bool = False


@dataclass(frozen=True)
class MeasuredMethod:
    """One decider on some logs.

    items, tokens: at the end, mean over logs. seconds: a decision took, on average, with the search
    for related items and their features, whether the decider looks at them or not. calls, failures:
    of a language model, per decision and in all; failure: the last one in words. reward: of the
    operations chosen, mean, where it was asked for.
    """

    name: str
    looked: tuple[Looked, ...]
    decided: tuple[DecidedBesideGold, ...]
    items: float
    tokens: float
    seconds: float
    calls: float = 0.0
    failures: int = 0
    failure: str = ""
    reward: float | None = None

    @property
    def scores(self) -> list[float]:
        """Answerability by question."""
        return [one.asked.score for one in self.looked]

    @property
    def score(self) -> float:
        """The mean of `scores`; 0 where nothing was asked."""
        return sum(self.scores) / max(1, len(self.scores))

    @property
    def needing(self) -> list[Looked]:
        """The questions that need evidence."""
        return [one for one in self.looked if one.asked.probe.needed]

    @property
    def misleadable(self) -> list[Looked]:
        """The questions that something can mislead."""
        return [one for one in self.looked if one.asked.probe.misleading]

    def hits(self) -> list[float]:
        """1 for each decision that was right, target included, 0 for others and for failures."""
        found = self.confusion()
        right = found.strict_hits if found else ()
        return [hit * (not one.failed) for hit, one in zip(right, self.decided, strict=True)]

    def balance(self) -> list[float]:
        """Weights of decisions with which every kind of gold operation in the logs counts alike."""
        counts = Counter(one.told for one in self.decided)
        return [1 / counts[one.told] for one in self.decided]

    def confusion(self) -> Confusion | None:
        """Chosen beside gold operations; None where no log has gold ones."""
        if not self.decided:
            return None
        gold = [one.gold for one in self.decided]
        return compare_operations(gold, [one.chosen for one in self.decided])

    def by_category(self) -> dict[str, float]:
        """Mean answerability of each category of questions."""
        found: dict[str, list[float]] = {}
        for one in self.looked:
            category = one.asked.probe.probe.question.category
            found.setdefault(category, []).append(one.asked.score)
        return {name: sum(values) / len(values) for name, values in sorted(found.items())}


def measure(
    name: str,
    make: MakeDecider,
    logs: Sequence[EmbeddedLog],
    standard: AnswerStandard,
    *,
    budget_share: float | None = None,
    budget_of: Sequence[EmbeddedLog] | None = None,
    ks: Sequence[int] = (),
    reward: OperationReward | None = None,
) -> MeasuredMethod:
    """Let a decider walk through all logs.

    budget_share: what share of all statements' tokens the memory may hold at any time; None: all.
    budget_of: the logs whose tokens are meant, where these have the same statements in other words.
    ks: the numbers of items for which evidence recall is measured, the standard's if none. reward:
    of single operations, to be measured too.
    """
    looked: list[Looked] = []
    decided: list[DecidedBesideGold] = []
    items = tokens = spent = 0.0
    calls = failures = 0
    failure = ""
    earned: list[float] = []
    for log, paid in zip(logs, budget_of or logs, strict=True):
        decider = make()
        budget = None if budget_share is None else int(budget_share * paid.tokens_N.sum())
        walk = Walk(log, standard, budget=budget, evict=decider.evict, reward=reward)
        while not walk.over:
            failed_before = decider.failures
            began = time.perf_counter()
            number = walk.point.number  # the search and the features, for whoever needs them or not
            action = decider.decide(walk)
            spent += time.perf_counter() - began
            failed = decider.failures > failed_before
            gold, told = walk.gold_action(), log.log.statements[number].gold
            if gold is not None and told is not None:
                ops = _operation(gold, walk), _operation(action, walk)
                decided.append(DecidedBesideGold(log.log.id, told.kind, *ops, failed))
            if reward is not None and walk.observe().allowed_A[action]:
                earned.append(float(walk.rewards()[action]))
            before = len(walk.asked)
            walk.take(action)
            for asked in walk.asked[before:]:
                looked.append(_look(walk, asked, number, standard, ks or (standard.top_k,)))
        items += len(walk.memory.carried)
        tokens += walk.memory.tokens
        calls, failures = calls + decider.calls, failures + decider.failures
        failure = decider.failure or failure
    count = max(1, sum(len(log.facts) for log in logs))
    return MeasuredMethod(
        name,
        tuple(looked),
        tuple(decided),
        items / max(1, len(logs)),
        tokens / max(1, len(logs)),
        spent / count,
        calls / count,
        failures,
        failure,
        sum(earned) / len(earned) if earned else None,
    )


def _look(
    walk: Walk, asked: WalkQuestion, number: int, standard: AnswerStandard, ks: Sequence[int]
) -> Looked:
    """The question once more, of the memory as it was when it was asked: nothing came since."""
    needed = asked.probe.needed_at(number)
    memory = walk.memory
    by_k = {
        k: retrieve(memory.state.items, asked.probe.query, top_k=k) for k in {*ks, standard.top_k}
    }
    recalls = {k: recalled(memory.statements_in(by_k[k]), needed) for k in ks}
    texts = tuple(hit.record.text for hit in by_k[standard.top_k])
    return Looked(walk.log.log.id, asked, recalls, texts)


def _operation(action: int, walk: Walk) -> ChosenOp:
    point = walk.point
    op = operation_of(action, point.fact, point.hits)
    return ChosenOp(op.kind, op.item_id)


@dataclass(frozen=True)
class ReaderAnswers:
    """Scores of answers by metric, one per question, and the answers; quality: of the judge."""

    scores: dict[str, list[float]]
    answers: list[str]
    quality: list[float]
    measured_by: str


def read_and_score(
    looked: Sequence[Looked],
    languages: Mapping[str, Language],
    reader: Reader,
    judge: Judge | None = None,
) -> ReaderAnswers:
    """Answer each question from the texts that it found, and score the answers.

    languages: by id of the log. Response quality is the judge's verdict where there is a judge, and
    SQuAD's F1 where there is none.
    """
    scores: dict[str, list[float]] = {metric: [] for metric in ANSWER_METRICS}
    answers, quality = [], []
    for one in looked:
        question, language = one.asked.probe.probe.question, languages[one.log]
        said = reader.answer(question, one.texts, language)
        best = best_scores(said, question, language)
        answers.append(said)
        for metric in ANSWER_METRICS:
            scores[metric].append(best[metric])
        if judge is None:
            quality.append(best["squad_f1"])
        else:
            golds = (question.answer, *question.accepted)
            judged = (
                AnsweredQuestion(question.id, question.text, gold, said, language) for gold in golds
            )
            quality.append(float(any(judge.verdict(one).correct for one in judged)))
    return ReaderAnswers(scores, answers, quality, judge.name if judge else "squad_f1")


def best_scores(said: str, question: Question, language: Language) -> dict[str, float]:
    """All of `ANSWER_METRICS`, each the best over the answers that count as right."""
    category = question.category if question.category in CATEGORIES else "single-hop"
    if question.adversarial:
        category = "single-hop"  # LoCoMo's rule for these looks for its own phrase, not the answer
    each = [
        answer_scores(said, gold, language, category=category)
        for gold in (question.answer, *question.accepted)
    ]
    return {metric: max(scores[metric] for scores in each) for metric in ANSWER_METRICS}
