"""The node of docs/how-to/ros2.md, run with a stand-in for the modules of ROS 2."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import truvar as tv

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "ros2.md").read_text(encoding="utf-8")
NODE = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)[0]
SUCCEEDED = 4
ABORTED = 6


class Future:
    """A future of rclpy: it calls back when it is resolved, not before."""

    def __init__(self) -> None:
        self.callbacks: list[Any] = []

    def add_done_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def result(self) -> Any:
        return self.value

    def resolve(self, value: Any) -> None:
        self.value = value
        for callback in self.callbacks:
            callback(self)


class Robot:
    """Record of the calls that the node makes to ROS 2."""

    def __init__(self) -> None:
        self.goals: list[Any] = []
        self.answers: list[Future] = []
        self.subscriptions: dict[str, Any] = {}
        self.log: list[str] = []
        self.n_shutdowns = 0
        self.calls: list[str] = []

    def modules(self) -> dict[str, ModuleType]:
        robot = self

        class Node:
            def __init__(self, name: str) -> None:
                robot.calls.append(f"node {name}")

            def create_subscription(self, kind: Any, topic: str, callback: Any, depth: int) -> None:
                assert kind is message
                assert depth > 0
                robot.subscriptions[topic] = callback

            def get_logger(self) -> Any:
                return SimpleNamespace(info=robot.log.append)

        class ActionClient:
            def __init__(self, node: Any, action: Any, name: str) -> None:
                assert isinstance(node, Node)
                assert action is navigate
                robot.calls.append(f"action {name}")

            def wait_for_server(self) -> None:
                robot.calls.append("wait")

            def send_goal_async(self, goal: Any) -> Future:
                assert robot.calls[-1] == "wait"
                robot.calls.append("goal")
                robot.goals.append(goal)
                robot.answers.append(Future())
                return robot.answers[-1]

        def goal() -> Any:
            pose = SimpleNamespace(position=SimpleNamespace(), orientation=SimpleNamespace())
            return SimpleNamespace(pose=SimpleNamespace(header=SimpleNamespace(), pose=pose))

        def shutdown() -> None:
            robot.n_shutdowns += 1

        message = SimpleNamespace
        navigate = SimpleNamespace(Goal=goal)
        contents: dict[str, dict[str, Any]] = {
            "rclpy": {
                "init": lambda: robot.calls.append("init"),
                "spin": lambda node: robot.calls.append("spin"),
                "shutdown": shutdown,
            },
            "rclpy.action": {"ActionClient": ActionClient},
            "rclpy.node": {"Node": Node},
            "action_msgs": {},
            "action_msgs.msg": {"GoalStatus": SimpleNamespace(STATUS_SUCCEEDED=SUCCEEDED)},
            "nav2_msgs": {},
            "nav2_msgs.action": {"NavigateToPose": navigate},
            "std_msgs": {},
            "std_msgs.msg": {"Float64": message},
        }
        made = {}
        for name, parts in contents.items():
            made[name] = ModuleType(name)
            vars(made[name]).update(parts)
        return made

    def arrive(self, status: int = SUCCEEDED) -> None:
        done = Future()
        self.answers[-1].resolve(SimpleNamespace(accepted=True, get_result_async=lambda: done))
        done.resolve(SimpleNamespace(status=status))

    def reject(self) -> None:
        self.answers[-1].resolve(SimpleNamespace(accepted=False))

    def read(self, value: float) -> None:
        self.subscriptions["oxygen"](SimpleNamespace(data=value))

    @property
    def position(self) -> dict[str, float]:
        pose = self.goals[-1].pose
        assert pose.header.frame_id == "map"
        assert pose.pose.orientation.w == 1.0
        return {"x_m": pose.pose.position.x, "y_m": pose.pose.position.y}


@pytest.fixture
def robot(monkeypatch: pytest.MonkeyPatch) -> Robot:
    each = Robot()
    for name, module in each.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    return each


@pytest.fixture
def namespace(robot: Robot) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(NODE, "docs/how-to/ros2.md", "exec"), names)
    return names


def a_study(**options: Any) -> tv.Study:
    pond = tv.Domain.grid(x_m=np.linspace(0, 40, 6), y_m=np.linspace(0, 20, 5))
    cost = tv.Cost(base=15, travel=tv.Euclidean({"x_m": 2, "y_m": 2}), start={"x_m": 0, "y_m": 0})
    return tv.Study(pond, tv.LevelSet(below=4), noise_sd=0.2, cost=cost, **options)


def test_it_drives_to_suggestions_and_tells_what_it_reads_there(
    robot: Robot, namespace: dict[str, Any]
) -> None:
    study = a_study()
    node = namespace["Surveyor"](study, budget=10_000)
    assert robot.calls == ["node surveyor", "action navigate_to_pose"]
    node.go()
    places = []
    for step in range(5):
        (pending,) = study.pending
        assert robot.position == pending.point
        places.append(pending.point)
        robot.read(99.0)  # on the way: it does not count
        assert study.steps == step
        robot.arrive()
        robot.read(float(step))
        robot.read(99.0)  # of the next way
    assert [record.point for record in study.measurement_records()] == places
    assert study.measurements["value"].tolist() == [0, 1, 2, 3, 4]
    assert len(robot.goals) == 6


def test_goals_that_are_rejected_or_not_reached_are_failures(
    robot: Robot, namespace: dict[str, Any]
) -> None:
    study = a_study()
    namespace["Surveyor"](study, budget=10_000).go()
    robot.reject()
    robot.arrive(ABORTED)
    reasons = [failure.reason for failure in study.failures]
    assert reasons == ["the goal was rejected", "not reached: status 6"]
    robot.arrive()
    robot.read(3.0)
    assert study.steps == 1


def test_it_ends_when_the_budget_does_not_pay_for_more(
    robot: Robot, namespace: dict[str, Any]
) -> None:
    study = a_study()
    namespace["Surveyor"](study, budget=150).go()
    for value in range(20):
        if robot.n_shutdowns:
            break
        robot.arrive()
        robot.read(float(value))
    assert robot.n_shutdowns == 1
    assert study.spent <= 150
    assert str(study.result().certificate) in robot.log[0]


def test_it_continues_where_it_was_switched_off(
    robot: Robot,
    namespace: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("sqlalchemy", reason="needs truvar[store]")
    monkeypatch.chdir(tmp_path)
    waiting = a_study(store="sqlite:///survey.db", name="pond").ask()
    namespace["main"]()
    assert robot.calls[0] == "init"
    assert robot.calls[-1] == "spin"
    assert robot.position == waiting.point
    robot.arrive()
    robot.read(5.0)
    assert tv.load("sqlite:///survey.db", "pond").measurements["id"].tolist() == [waiting.id]


def test_the_node_has_about_fifty_lines() -> None:
    lines = [line for line in NODE.splitlines() if line.strip()]
    assert len(lines) <= 55
