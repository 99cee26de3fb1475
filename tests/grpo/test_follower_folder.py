"""Ranks other than 0 leave the run folder as it is."""

from __future__ import annotations

from pathlib import Path

from memograd.grpo import RunFolder
from memograd.grpo.run_folder import FollowerFolder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_written_whatever_is_called(tmp_path: Path) -> None:
    """Every public method of `RunFolder` that writes, with the same answers as rank 0's."""
    leader = RunFolder.create(tmp_path / "run", "{}", task="text")
    leader.append_metrics({"step": 1, "loss": 0.5})
    before = contents(leader.path)
    follower = FollowerFolder(leader.path)
    with follower.lock():
        follower.append_metrics({"step": 2, "loss": 0.5})
        follower.truncate_metrics(0)
        follower.write_data({"sha256": "0"})
        follower.replace_config('{"steps": 2}')
        rollouts = follower.write_rollouts(3, "text", ["{}"], folder="failures")
        checkpoint = follower.save_checkpoint("checkpoint-1", lambda folder: None, step=1)
    assert contents(leader.path) == before
    assert follower.read_metrics() == leader.read_metrics() == [{"step": 1, "loss": 0.5}]
    assert rollouts == leader.write_rollouts(3, "text", ["{}"], folder="failures")
    assert checkpoint == leader.save_checkpoint("checkpoint-1", lambda folder: None, step=1)


def test_every_method_of_the_run_folder_that_writes_is_overridden() -> None:
    reading = {"check_free", "create", "open", "path", "config_json", "task", "metrics_path"}
    reading |= {"read_metrics", "check_metrics", "read_data", "latest_checkpoint"}
    public = {name for name in vars(RunFolder) if not name.startswith("_")}
    assert public - reading <= set(vars(FollowerFolder))
