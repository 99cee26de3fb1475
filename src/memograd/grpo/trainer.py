"""The GRPO loop, readable top to bottom: ask, answer, reward, compare, move.

    for each step:
        scenarios  -> G rollouts each                (a drawing: answers, or whole episodes)
        rollouts   -> rewards -> advantages          (relative to the group)
        trees      -> log-probabilities -> loss      (policy.logprobs: every shared token once)
        loss       -> gradient -> weights

It knows no task and no model: scenarios carry the chat and the columns that rewards read, the
policy and how it attempts scenarios (`memograd.grpo.drawing`) are protocols. Invariant (house
contract 5): all state that outlives a step is the policy's weights and what `TrainerState` holds,
and a checkpoint has both, so a resumed run gives the numbers of the run that never stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from memograd.config import TrainConfig
from memograd.errors import BadInput, Stopped
from memograd.grpo.asking import ScenarioChooser, temperature_at
from memograd.grpo.batch import Draw, score_rows
from memograd.grpo.checkpoint_folder import BEST
from memograd.grpo.distributed import ALONE, World
from memograd.grpo.drawing import (
    Attempts,
    Drawing,
    DrawnAhead,
    SingleTurn,
    draw_by_ranks,
    draw_informative,
    draw_share,
)
from memograd.grpo.experience import Experience, check_sampled
from memograd.grpo.learner import Update, learn
from memograd.grpo.loss import Objective
from memograd.grpo.optimizer import HALF, PartedAdamW, learning_rate_at
from memograd.grpo.replay import KeptGroup, Replay, with_replayed
from memograd.grpo.resume import check_data
from memograd.grpo.rollout_files import RolloutFiles
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.run_state import (
    StopRequest,
    capture_random_states,
    restore_random_states,
    stop_request,
)
from memograd.grpo.sampler_gap import GapLimits, SamplerGapTooWide
from memograd.grpo.tracking import (
    Clock,
    Tracker,
    flat_metrics,
    oldest_version,
    own_advantages,
    step_metrics,
    tracked,
)
from memograd.grpo.trainer_state import TrainerState
from memograd.policy.protocol import Policy
from memograd.policy.remote.server import SamplingFailed
from memograd.rewards import WeightedReward
from memograd.rewards.compose import RewardError
from memograd.rollout.episode import EpisodeError
from memograd.rollout.types import Scenario


@dataclass(frozen=True)
class Stage:
    """The run that a training writes into: its folder, its processes, and who hears of a step.

    Only rank 0 of `world` writes: `run` is a `FollowerFolder` on the others, and a training calls
    neither `on_step` nor `trackers` there.
    """

    run: RunFolder
    world: World = ALONE
    trackers: Sequence[Tracker] = ()
    on_step: Callable[[dict[str, Any]], None] = lambda metrics: None


def check_unmeasured(config: TrainConfig) -> None:
    """Raise `BadInput` where the settings ask for measures while nothing is held out."""
    if config.eval_steps is not None:
        raise BadInput(
            f"eval_steps={config.eval_steps} measures held-out data, and nothing is held out:"
            " hold something out, or leave eval_steps out."
        )


class Trainer:
    """Trains `policy` on `scenarios` and writes metrics, rollouts and checkpoints into the run.

    `drawing` says how scenarios are attempted; one answer a rollout if it is None. `evaluate` gives
    the policy's score on held-out data, and is asked every `config.eval_steps` steps with a label
    for the screen; the checkpoint of the best score so far is kept as `best`. Of several ranks,
    each has a trainer with the same arguments, but for what `Stage` says.
    Raises `BadInput` if there are no scenarios, or not those that the run began with, or nothing to
    evaluate by where it is asked for.
    """

    def __init__(
        self,
        policy: Policy,
        scenarios: Sequence[Scenario],
        rewards: Sequence[WeightedReward],
        config: TrainConfig,
        stage: Stage,
        *,
        drawing: Drawing | None = None,
        evaluate: Callable[[str], float] | None = None,
    ) -> None:
        run, world = stage.run, stage.world
        if not scenarios:
            raise BadInput(
                "there is nothing to train on: the chosen data hold no question and no row"
            )
        if evaluate is None:
            check_unmeasured(config)
        check_data(run, scenarios)
        self.policy = policy
        self._verified = False
        self._moved = False
        self._scenarios = scenarios
        self._asking = ScenarioChooser(scenarios, config)
        self._replay = Replay(
            capacity=config.schedules.replay_capacity,
            max_age=config.schedules.replay_max_age,
            max_uses=config.schedules.replay_max_uses,
        )
        self._rewards = rewards
        self._drawing = drawing or SingleTurn(
            policy,
            num_generations=config.num_generations,
            max_completion_length=config.max_completion_length,
        )
        self._config = config
        self._run = run
        self._world = world
        self._rollouts = RolloutFiles(run, policy)
        self._evaluate = evaluate
        self._on_step = stage.on_step if world.leads else lambda metrics: None
        self._trackers = stage.trackers if world.leads else ()
        gap = None
        if config.sampler.engine != "local":
            gap = GapLimits.of(config.sampler, policy.dtype)
        self._objective = Objective.from_config(config, gap)
        self._optimizer = PartedAdamW(
            policy.parameters(),
            learning_rate=config.learning_rate,
            weight_decay=config.weight_decay,
            world=world,
            rounded=policy.dtype in HALF,
        )
        self._state = TrainerState(
            policy,
            self._optimizer,
            asking=self._asking,
            replay=self._replay,
            run=run,
            world=world,
            seed=config.seed,
        )
        staleness = config.sampler.max_staleness
        self._ahead: DrawnAhead[Attempts | None] | None = (
            DrawnAhead(staleness) if staleness else None
        )

    @property
    def step(self) -> int:
        """Steps that are done."""
        return self._state.step

    def restore(self, checkpoint: Path) -> None:
        """Go on from `checkpoint`, with whose weights the policy was loaded; raises what
        `TrainerState.restore` raises."""
        self._state.restore(checkpoint, self._scenarios)

    def train(self) -> Path:
        """Run up to `config.steps`; returns the folder of the final checkpoint.

        Raises:
            Stopped: SIGTERM or SIGINT came; the step was finished and a checkpoint written.
            MemogradError: a reward could not be computed, or something was not a finite number;
                the groups that it came from are in the run's folder `failures`. Or an episode
                raised.
        """
        settings = self._config.model_dump(mode="json")
        tracking = tracked(self._trackers, self._run.path.name, settings)
        with stop_request() as stop, ExitStack() as open_trackers:
            if self._ahead is not None:
                open_trackers.callback(self._ahead.close)
            self._world.guarded(lambda: open_trackers.enter_context(tracking))
            self._world.check_equal_weights(self.policy.parameters())
            while self.step < self._config.steps:
                self._state.begin_step()
                self._moved = False
                try:
                    metrics = self._one_step()
                except (RewardError, EpisodeError, SamplingFailed, SamplerGapTooWide):
                    if not self._moved:  # else the weights are no longer those of the step before
                        self._state.save_before_step()
                    raise
                self._world.guarded(partial(self._announce, metrics))
                if metrics.get("eval_best"):
                    self._state.save(BEST)
                if self.step == self._config.steps:
                    break
                signal = self._signal(stop)
                if signal or self.step % self._config.save_steps == 0:
                    self._state.save(f"checkpoint-{self.step}")
                if signal:
                    raise self._stopped(signal)
            final = self._state.save("final")
            self._publish_weights(self.step)  # whoever measures it now measures the trained policy
            self._world.guarded(open_trackers.close)
            signal = self._signal(stop)
        if signal:
            raise self._stopped(signal)
        return final

    def _announce(self, metrics: dict[str, Any]) -> None:
        self._on_step(metrics)
        for tracker in self._trackers:
            tracker.log(self.step, flat_metrics(metrics))

    def _signal(self, stop: StopRequest) -> int:
        """The number of the signal that asked any of the ranks to stop, or 0."""
        return max(self._world.together(lambda: stop.signal or 0))

    def _stopped(self, signal_number: int) -> Stopped:
        path = self._run.path
        return Stopped(
            f"stopped by a signal after step {self.step} of {self._config.steps}; go on with "
            f"resume={path}",
            signal_number,
        )

    def _one_step(self) -> dict[str, Any]:
        config, clock = self._config, Clock()
        self._state.step += 1
        objective = replace(self._objective, temperature=self._temperature())
        with clock.phase("publish"):
            self._publish_weights(self.step - 1)
        drawn = draw_informative(
            lambda attempt, sizes: self._draw(attempt, sizes, objective, clock),
            sizes=[config.num_generations] * config.prompts_per_step,
            rounds=config.resample_rounds,
            advantage=objective.advantage,
        )
        experience = drawn.experience
        self._state.zero_variance_fraction = drawn.dull / drawn.groups
        self._world.led(self.policy.rest)
        agreement = None
        if not self._verified:
            with clock.phase("verify"):
                agreement = self.policy.verify(experience.trees, temperature=objective.temperature)
            self._verified = True
        learning_rate = self._set_learning_rate()
        replayed = self._replayed()
        learned = with_replayed(experience, replayed, objective.advantage)
        learned = replace(learned, on_policy=True)
        kept = self._rollouts.kept_on_failure(self.step, learned.groups, learned)
        with kept, clock.phase("learn"):
            update = self._learn(learned, objective)
        self._moved = True
        if config.schedules.replay_groups:
            self._replay.add(experience, step=self.step, advantage=objective.advantage)
        experience = replace(experience, advantages=own_advantages(update, experience))
        metrics = step_metrics(self.step, experience, update)
        if objective.gap is not None and update.gaps is not None:
            metrics |= {"sampler_version": self.policy.version, **update.gaps.metrics()}
            metrics["sampler_staleness"] = self.policy.version - oldest_version(experience)
        metrics |= {
            "zero_variance_fraction": self._state.zero_variance_fraction,
            "groups_drawn": drawn.groups,
            "learning_rate": learning_rate,
            "temperature": objective.temperature,
            "seconds": clock.seconds,
        }
        metrics |= self._drawing.metrics(experience.rollouts)
        metrics |= self._asking.metrics(experience)
        metrics |= self._evaluated(clock)
        if config.schedules.replay_groups:
            ages = [self.step - kept.step for kept in replayed]
            metrics["groups_replayed"] = len(ages)
            metrics["replay_age_mean"] = float(np.mean(ages)) if ages else None
        if agreement is not None and self.step == 1:
            metrics["tree_logprob_error"] = agreement.logprob_error
            metrics["tree_gradient_error"] = agreement.gradient_error
        self._world.guarded(lambda: self._write_down(metrics, experience))
        return metrics

    def _learn(self, learned: Experience, objective: Objective) -> Update:
        """Move the weights; a sampler that cannot be learnt from is asked why."""
        try:
            return learn(self.policy, self._optimizer, learned, objective, self._world)
        except SamplerGapTooWide as error:
            prompt = learned.trees[0].prompt
            limit = objective.gap.stop if objective.gap else 0.0
            cause = self._world.led(
                lambda: self.policy.why_gap(prompt, temperature=objective.temperature, limit=limit)
            )
            raise SamplerGapTooWide(f"{error}; {cause}; no weight was moved", error.gaps) from error

    def _publish_weights(self, version: int) -> None:
        """Let the weights as they are now draw: rank 0 tells the servers, if there are any."""
        publish = self.policy.publisher(version)  # for which each process gives its share
        self.policy.follow(self._world.led(publish))

    def _evaluated(self, clock: Clock) -> dict[str, Any]:
        """The score of this step and whether it is the best so far, where it is asked for.

        Measuring leaves the random states of training as they were.
        """
        every, evaluate = self._config.eval_steps, self._evaluate
        if every is None or evaluate is None or self.step % every:
            return {}
        states = capture_random_states(self._state.generator)
        self._publish_weights(self.step)
        with clock.phase("evaluate"):
            score = self._world.led(lambda: evaluate(f"step {self.step}"))
        restore_random_states(states, self._state.generator)
        before = self._world.led(self._scores)
        return {"eval_score": score, "eval_best": all(score > other for other in before)}

    def _scores(self) -> list[float]:
        """The scores of the steps before this one."""
        rows = self._run.read_metrics()
        return [row["eval_score"] for row in rows if isinstance(row.get("eval_score"), float | int)]

    def _replayed(self) -> list[KeptGroup]:
        count = self._config.schedules.replay_groups
        return self._replay.draw(count, step=self.step, seed=self._config.seed) if count else []

    def _write_down(self, metrics: dict[str, Any], experience: Experience) -> None:
        self._run.append_metrics(metrics)
        if self.step == 1 or self.step % self._config.rollout_log_steps == 0:
            self._rollouts.write(self.step, experience.groups, experience)

    def _draw(
        self, attempt: int, sizes: Sequence[int], objective: Objective, clock: Clock
    ) -> Experience:
        """Let the policy attempt scenarios of this step, as many rollouts as `sizes` sum to;
        attempts above 0 replace groups."""
        with clock.phase("sample"):
            drawn = draw_by_ranks(self._world, self._share(attempt, sizes, objective.temperature))
        groups = drawn.groups
        with self._rollouts.kept_on_failure(self.step, groups), clock.phase("reward"):
            check_sampled(groups)
            experience = score_rows(
                groups,
                self._rewards,
                objective,
                trees=drawn.trees,
                rollouts_of_tree=drawn.rollouts_of_tree,
                old_logprobs=drawn.old_logprobs,
                world=self._world,
            )
        self._asking.hear(experience)
        return experience

    def _share(
        self, attempt: int, sizes: Sequence[int], temperature: float
    ) -> Callable[[], Attempts | None]:
        """What draws this rank's share; of a step's own groups, what was drawn ahead."""

        def prepare(step: int, generator: torch.Generator) -> Callable[[], Attempts | None]:
            scenarios, own = self._asking.ask(step=step, attempt=attempt, sizes=sizes)
            draw = Draw(step, temperature, generator, own, attempt)
            return partial(draw_share, self._world, self._drawing, scenarios, draw)

        ahead = self._ahead
        if ahead is None or attempt > 0:
            return prepare(self.step, self._state.generator)
        last = self._config.steps
        return lambda: ahead.take(self.step, last, lambda step: prepare(step, self._fork()))

    def _fork(self) -> torch.Generator:
        """A generator of its own for what a thread draws."""
        device = self._state.generator.device
        seed = torch.randint(0, 2**48, (1,), generator=self._state.generator, device=device)
        return torch.Generator(device).manual_seed(int(seed))

    def _temperature(self) -> float:
        config = self._config
        return temperature_at(
            self.step,
            steps=config.steps,
            start=config.temperature,
            end=config.temperature_end or config.temperature,
            schedule=config.temperature_schedule,
            zero_variance_fraction=self._state.zero_variance_fraction,
        )

    def _set_learning_rate(self) -> float:
        config = self._config
        rate = learning_rate_at(
            self.step,
            steps=config.steps,
            peak=config.learning_rate,
            warmup_steps=config.warmup_steps,
            schedule=config.learning_rate_schedule,
        )
        self._optimizer.set_learning_rate(rate)
        return rate
