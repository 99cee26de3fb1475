"""The GRPO loop, readable top to bottom: ask, answer, reward, compare, move.

    for each step:
        scenarios  -> G rollouts each                (a drawing: answers, or whole episodes)
        rollouts   -> rewards -> advantages          (relative to the group)
        trees      -> log-probabilities -> loss      (policy.logprobs: every shared token once)
        loss       -> gradient -> weights

It knows no task and no model: scenarios carry the chat and the columns that rewards read, the
policy and how it attempts scenarios (`memograd.grpo.drawing`) are protocols. Invariant (house
contract 5): all state that outlives a step is the policy's weights, the optimiser, the random
generators, and what schedules remember (pass rates, groups for replay), and a checkpoint holds them
all, so a resumed run gives the numbers of the run that never stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from memograd.config import TrainConfig
from memograd.errors import BadInput, Stopped
from memograd.grpo.advantage import GroupAdvantages
from memograd.grpo.asking import ScenarioChooser
from memograd.grpo.batch import score_rows
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
from memograd.grpo.objective import Objective
from memograd.grpo.replay import KeptGroup, Replay, kept_groups, plain_groups, with_replayed
from memograd.grpo.resume import check_data
from memograd.grpo.rollout_files import RolloutFiles
from memograd.grpo.run_folder import RunFolder
from memograd.grpo.run_state import (
    StopRequest,
    capture_random_states,
    restore_random_states,
    seed_everything,
    stop_request,
)
from memograd.grpo.sampler_gap import GapLimits, SamplerGapTooWide
from memograd.grpo.schedules import learning_rate_at, temperature_at
from memograd.grpo.tracking import Tracker, flat_metrics, tracked
from memograd.policy.protocol import Policy
from memograd.policy.remote.server import SamplingFailed
from memograd.rewards import WeightedReward
from memograd.rewards.compose import RewardError
from memograd.rollout.episode import EpisodeError
from memograd.rollout.types import UNSAID, Scenario

STATE_FILE = "trainer_state.pt"
STATE_KEYS = {
    *("step", "optimizer", "ranks", "device"),
    *("zero_variance_fraction", "pass_rates", "replay"),
}
"""What a checkpoint's state holds; `ranks` has what differs between processes, by rank."""


class Trainer:
    """Trains `policy` on `scenarios` and writes metrics, rollouts and checkpoints into `run`.

    `drawing` says how scenarios are attempted; one answer a rollout if it is None. `evaluate` gives
    the policy's score on held-out data, and is asked every `config.eval_steps` steps with a label
    for the screen; the checkpoint of the best score so far is kept as `best`. Of several ranks
    (`world`), each has a trainer with the same arguments, except that only rank 0 writes: `run` is
    a `FollowerFolder` on the others, and `on_step` and `trackers` are never called there.
    Raises `BadInput` if there are no scenarios, or not those that `run` began with, or nothing to
    evaluate by where it is asked for.
    """

    def __init__(
        self,
        policy: Policy,
        scenarios: Sequence[Scenario],
        rewards: Sequence[WeightedReward],
        config: TrainConfig,
        run: RunFolder,
        *,
        drawing: Drawing | None = None,
        evaluate: Callable[[str], float] | None = None,
        on_step: Callable[[dict[str, Any]], None] = lambda metrics: None,
        trackers: Sequence[Tracker] = (),
        world: World = ALONE,
    ) -> None:
        if not scenarios:
            raise BadInput(
                "there is nothing to train on: the chosen data hold no question and no row"
            )
        if config.eval_steps is not None and evaluate is None:
            raise BadInput(
                f"eval_steps={config.eval_steps} measures held-out data, and nothing is held out:"
                " hold something out, or leave eval_steps out."
            )
        check_data(run, scenarios)
        self.policy = policy
        self.step = 0
        self._verified = False
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
        self._on_step = on_step if world.leads else lambda metrics: None
        self._trackers = trackers if world.leads else ()
        gap = None
        if config.sampler.engine != "local":
            gap = GapLimits.of(config.sampler, policy.dtype)
        self._objective = Objective.from_config(config, gap)
        self._zero_variance_fraction = 0.0
        self._optimizer = torch.optim.AdamW(
            policy.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        seed = world.seed(config.seed)
        self._generator = torch.Generator(policy.device).manual_seed(seed)
        seed_everything(seed)
        staleness = config.sampler.max_staleness
        self._ahead: DrawnAhead[Attempts | None] | None = (
            DrawnAhead(staleness) if staleness else None
        )
        self._step_began = self._small_state()

    def restore(self, checkpoint: Path) -> None:
        """Take over step, optimiser and random states; the policy is loaded from there before.

        Raises `BadInput` if it was made on another kind of device, by another number of processes
        or by another version.
        """
        state = torch.load(checkpoint / STATE_FILE, map_location="cpu", weights_only=True)
        if set(state) != STATE_KEYS:
            raise BadInput(
                f"{checkpoint} was made by another version of memograd (it holds "
                f"{', '.join(sorted(state))}); resume it with that version, or begin a new run"
            )
        if state["device"] != self.policy.device.type:
            raise BadInput(
                f"{checkpoint} was made on {state['device']} and cannot be continued on "
                f"{self.policy.device.type}; resume where {state['device']} is available"
            )
        processes = len(state["ranks"])
        if processes != self._world.size:
            raise BadInput(
                f"{checkpoint} was made by {processes} processes and cannot be continued by "
                f"{self._world.size}; start as many as before (torchrun --nproc_per_node)"
            )
        self.step = state["step"]
        self._optimizer.load_state_dict(state["optimizer"])
        own = state["ranks"][self._world.rank]
        restore_random_states(own["random"], self._generator)
        self.policy.forward = own["forward"]
        self.policy.token_bytes = own.get("token_bytes", 0.0)
        self._zero_variance_fraction = state["zero_variance_fraction"]
        self._asking.restore(state["pass_rates"])
        self._replay.restore(kept_groups(state["replay"], self._scenarios))
        self._step_began = self._small_state()

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
                self._step_began = self._small_state()
                try:
                    metrics = self._one_step()
                except (RewardError, EpisodeError, SamplingFailed, SamplerGapTooWide):
                    self._save_before_step()
                    raise
                self._world.guarded(partial(self._announce, metrics))
                if metrics.get("eval_best"):
                    self._save(BEST)
                if self.step == self._config.steps:
                    break
                signal = self._signal(stop)
                if signal or self.step % self._config.save_steps == 0:
                    self._save(f"checkpoint-{self.step}")
                if signal:
                    raise self._stopped(signal)
            final = self._save("final")
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
        config, clock = self._config, _Clock()
        self.step += 1
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
        self._zero_variance_fraction = drawn.dull / drawn.groups
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
        if config.schedules.replay_groups:
            self._replay.add(experience, step=self.step, advantage=objective.advantage)
        experience = replace(experience, advantages=_first(update.advantages, experience))
        metrics = step_metrics(self.step, experience, update)
        if objective.gap is not None and update.gaps is not None:
            metrics |= {"sampler_version": self.policy.version, **update.gaps.metrics()}
            metrics["sampler_staleness"] = self.policy.version - oldest_version(experience)
        if update.value_loss is not None:
            metrics["value_loss"] = update.value_loss
        metrics |= {
            "zero_variance_fraction": self._zero_variance_fraction,
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
        self.policy.follow(self._world.led(lambda: self.policy.publish(version)))

    def _evaluated(self, clock: _Clock) -> dict[str, Any]:
        """The score of this step and whether it is the best so far, where it is asked for.

        Measuring leaves the random states of training as they were.
        """
        every, evaluate = self._config.eval_steps, self._evaluate
        if every is None or evaluate is None or self.step % every:
            return {}
        states = capture_random_states(self._generator)
        self._publish_weights(self.step)
        with clock.phase("evaluate"):
            score = self._world.led(lambda: evaluate(f"step {self.step}"))
        restore_random_states(states, self._generator)
        before = self._world.led(self._scores)
        return {"eval_score": score, "eval_best": all(score > other for other in before)}

    def _scores(self) -> list[float]:
        """The scores of the steps before this one."""
        rows = self._run.read_metrics()
        return [row["eval_score"] for row in rows if "eval_score" in row]

    def _replayed(self) -> list[KeptGroup]:
        count = self._config.schedules.replay_groups
        return self._replay.draw(count, step=self.step, seed=self._config.seed) if count else []

    def _write_down(self, metrics: dict[str, Any], experience: Experience) -> None:
        self._run.append_metrics(metrics)
        if self.step == 1 or self.step % self._config.rollout_log_steps == 0:
            self._rollouts.write(self.step, experience.groups, experience)

    def _draw(
        self, attempt: int, sizes: Sequence[int], objective: Objective, clock: _Clock
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
            return partial(
                draw_share,
                self._world,
                self._drawing,
                scenarios,
                step=step,
                attempt=attempt,
                temperature=temperature,
                generator=generator,
                sizes=own,
            )

        ahead = self._ahead
        if ahead is None or attempt > 0:
            return prepare(self.step, self._generator)
        last = self._config.steps
        return lambda: ahead.take(self.step, last, lambda step: prepare(step, self._fork()))

    def _fork(self) -> torch.Generator:
        """A generator of its own for what a thread draws."""
        device = self._generator.device
        seed = torch.randint(0, 2**48, (1,), generator=self._generator, device=device)
        return torch.Generator(device).manual_seed(int(seed))

    def _temperature(self) -> float:
        config = self._config
        return temperature_at(
            self.step,
            steps=config.steps,
            start=config.temperature,
            end=config.temperature_end or config.temperature,
            schedule=config.temperature_schedule,
            zero_variance_fraction=self._zero_variance_fraction,
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
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        return rate

    def _small_state(self) -> dict[str, Any]:
        """What a step changes besides weights and optimiser; cheap enough to keep every step."""
        return {
            "step": self.step,
            "zero_variance_fraction": self._zero_variance_fraction,
            "pass_rates": self._asking.state(),
            "replay": self._replay.state(),
            "own": {
                "random": capture_random_states(self._generator),
                "forward": self.policy.forward,
                "token_bytes": self.policy.token_bytes,
            },
        }

    def _save(self, name: str) -> Path:
        return self._publish(name, self._small_state())

    def _save_before_step(self) -> None:
        """Keep the steps before one that failed before it moved the weights."""
        state = self._step_began
        name = f"checkpoint-{state['step']}"
        if state["step"] > 0 and not (self._run.path / name).exists():
            self._publish(name, state)

    def _publish(self, name: str, small_state: dict[str, Any]) -> Path:
        """Let rank 0 write a checkpoint of weights, optimiser and every rank's own state."""
        self._world.check_equal_weights(self.policy.parameters())
        state = {**small_state, "ranks": self._world.together(lambda: small_state["own"])}
        del state["own"]
        return self._world.guarded(
            lambda: self._run.save_checkpoint(
                name, partial(self._write_checkpoint, state), step=state["step"]
            )
        )

    def _write_checkpoint(self, state: dict[str, Any], folder: Path) -> None:
        self.policy.save(folder)
        state = {
            **state,
            "replay": plain_groups(state["replay"]),
            "optimizer": self._optimizer.state_dict(),
            "device": self.policy.device.type,
        }
        torch.save(state, folder / STATE_FILE)


def step_metrics(step: int, experience: Experience, update: Update) -> dict[str, Any]:
    """One line of `metrics.jsonl`, timing aside; keys are explained in `docs/architecture.md`."""
    rewards_K = experience.rewards_K
    advantages_K = experience.advantages.advantages_K
    rollouts = experience.rollouts
    trees = experience.trees
    cut = [rollout.turns[-1].stop_reason == "length" for rollout in rollouts]
    return {
        "step": step,
        "reward_mean": float(rewards_K.mean()),
        "reward_std": float(rewards_K.std()),
        "reward_normalised_mean": float(advantages_K.mean()),
        "reward_normalised_std": float(advantages_K.std()),
        "rewards": experience.rewards.means(),
        "loss": update.loss,
        "kl": update.kl,
        "entropy": update.entropy,
        "grad_norm": update.grad_norm,
        "clip_fraction": update.clip_fraction,
        "sampler_gap": update.sampler_gap,
        "tokens": sum(rollout.tokens for rollout in rollouts),
        "tokens_as_rows": sum(tree.rows_tokens for tree in trees),
        "tokens_as_tree": sum(tree.tree_tokens for tree in trees),
        "cut_fraction": float(np.mean(cut)),
    }


def oldest_version(experience: Experience) -> int:
    """The oldest version that drew one of its rollouts; `UNSAID` if none says."""
    return min(
        (
            span.version
            for rollout in experience.rollouts
            for turn in rollout.turns
            for span in turn.versions
        ),
        default=UNSAID,
    )


def _first(advantages: GroupAdvantages, experience: Experience) -> GroupAdvantages:
    """Those of the experience's own groups, which come before replayed ones."""
    return GroupAdvantages(
        advantages.advantages_K[: len(experience.compared_K)],
        advantages.varied_B[: len(experience.groups)],
    )


class _Clock:
    """Seconds by phase of one step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        seconds = self.seconds.get(name, 0.0) + time.perf_counter() - start
        self.seconds[name] = round(seconds, 4)
