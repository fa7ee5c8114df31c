"""`MLflowLogger`: log the measurements of a study to MLflow.

| MLflow | here |
|---|---|
| run | the study, with its settings as parameters |
| metrics of the run, by step | value, cost, spent and best value; the step is the id of the measurement |
| nested run | one measurement: point as parameters, value and cost as metrics, reference as a tag |
| failed nested run | a measurement that failed, with the reason as a tag |
"""

from __future__ import annotations

import posixpath
import re
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from time import monotonic
from typing import Any

from truvar.exceptions import import_optional
from truvar.study.base import BaseStudy
from truvar.study.records import FailureRecord, MeasurementRecord

_STUDY = "truvar.study"  # tag with the name of the study
_SOURCE = "truvar"  # source of the runs of studies, not of those of measurements
_ID = "truvar.id"  # tag with the id of a measurement
_MAX_TEXT = 500  # characters of a parameter
_MAX_NAME = 200  # characters of the name of a parameter or a metric
_NOT_ALLOWED = re.compile(r"[^\w\-. /]")  # in the name of a parameter or a metric
_OWN_METRICS = ("cost", "spent", "best", "failed")
_LONG = 1.0  # seconds after which a call that failed is not repeated with the next measurement
_PAUSE = 10.0  # time until it is repeated, in units of the time that it took


class MLflowLogger:
    """A callback of `study.run` that logs to MLflow; in an ask-and-tell loop, call it with the study.

    Every call logs what has not been logged yet, by the ids of the measurements, also by an earlier
    logger of the same study. Where MLflow cannot be reached it warns, and the next call catches up;
    if it took MLflow long to give up, the calls in ten times that time are passed over. Corrected
    and withdrawn measurements stay as they were logged.

    Args:
        experiment: Name of the experiment, which is created if it is missing.
        tracking_uri: Address of the store or server of MLflow; default: that of `MLFLOW_TRACKING_URI`.
        name: Name of the run; default: that of the study, or "study" without one.
        nested: Whether each measurement is also a nested run.
        tags: Further tags of the run.

    Attributes:
        run_id: Id of the run; None before the first call.

    Raises:
        MissingDependencyError: If MLflow is not installed.

    Example:
        >>> study.run(measure, steps=40, callbacks=[MLflowLogger("alignment")])
    """

    def __init__(
        self,
        experiment: str = "truvar",
        tracking_uri: str | None = None,
        *,
        name: str | None = None,
        nested: bool = True,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        library = import_optional("mlflow", "MLflowLogger", "mlflow")
        self._client = library.MlflowClient(tracking_uri=tracking_uri)
        self._failure = library.exceptions.MlflowException
        self._experiment = experiment
        self._name = name
        self._nested = nested
        self._tags = dict(tags or {})
        self._experiment_id = ""
        self._logged: set[int] = set()
        self._next_time = 0.0  # by the monotonic clock
        self.run_id: str | None = None

    def __call__(self, study: BaseStudy, *_: Any) -> None:
        """Log what has not been logged yet.

        Args:
            study: The study.
        """
        if monotonic() >= self._next_time:
            self._try(lambda: self._log(study))

    def finish(self, study: BaseStudy) -> None:
        """Log what has not been logged yet, and mark the run as finished.

        Args:
            study: The study.
        """

        def log_all() -> None:
            self._log(study)
            self._client.set_terminated(self.run_id)

        self._try(log_all)

    def _try(self, log: Callable[[], None]) -> None:
        """Log something, or warn that it cannot be."""
        began = monotonic()
        try:
            log()
        except (self._failure, OSError) as error:
            took = monotonic() - began
            if took > _LONG:
                self._next_time = monotonic() + _PAUSE * took
            reason = " ".join(str(error).split())[:_MAX_TEXT]
            message = f"MLflow cannot be written ({reason}); a later call logs what is missing"
            warnings.warn(message, RuntimeWarning, stacklevel=3)

    def _log(self, study: BaseStudy) -> None:
        if self.run_id is None:
            self._begin(study)
        quantities = tuple(study.goal.parts)
        names = _names(quantities or ("value",), _OWN_METRICS)
        sign = study.goal.sign
        best = None
        for record in study.measurement_records():
            values = {names[name]: value for name, value in _values(record).items()}
            if not quantities and study.goal.seeks_optimum:
                best = (
                    record.value if best is None else sign * max(sign * best, sign * record.value)
                )
            if record.id in self._logged:
                continue
            metrics = {**values, "cost": record.cost, "spent": record.spent}
            if best is not None:
                metrics["best"] = best
            self._log_metrics(self.run_id, metrics, record.id)
            if self._nested:
                self._log_measurement(record, {**values, "cost": record.cost})
            self._logged.add(record.id)
        for failure in study.failures:
            if failure.id not in self._logged:
                self._log_metrics(self.run_id, {"failed": 1.0}, failure.id)
                if self._nested:
                    self._log_failure(failure)
                self._logged.add(failure.id)

    def _begin(self, study: BaseStudy) -> None:
        """Find the run of the study, or create it."""
        found = self._client.get_experiment_by_name(self._experiment)
        if found is None:
            self._experiment_id = self._client.create_experiment(self._experiment)
        else:
            self._experiment_id = found.experiment_id
        name = self._name or study.name or "study"
        run_id = self._earlier_run(study)
        if run_id is None:
            tags = {**self._tags, "mlflow.runName": name, "mlflow.source.name": _SOURCE}
            if study.name is not None:
                tags[_STUDY] = study.name
            run_id = self._client.create_run(self._experiment_id, tags=tags).info.run_id
            for key, value in _settings(study).items():
                self._client.log_param(run_id, key, value[:_MAX_TEXT])
        else:
            self._client.update_run(run_id, status="RUNNING")
            for metric in ("cost", "failed"):
                history = self._client.get_metric_history(run_id, metric)
                self._logged |= {each.step for each in history}
        self.run_id = run_id

    def _earlier_run(self, study: BaseStudy) -> str | None:
        """Return the run that an earlier logger made for the study; one in memory has none."""
        if study.name is None:
            return None
        # Names are compared here: no filter of MLflow can quote every name.
        token = None
        while True:
            runs = self._client.search_runs(
                [self._experiment_id],
                filter_string=f"tags.`mlflow.source.name` = '{_SOURCE}'",
                page_token=token,
            )
            for run in runs:
                if run.data.tags.get(_STUDY) == study.name:
                    return str(run.info.run_id)
            token = runs.token
            if not token:
                return None

    def _log_metrics(self, run_id: str | None, metrics: Mapping[str, float], step: int) -> None:
        # The metric that tells what is logged comes last: an interrupted call is made up for.
        now = int(time.time() * 1000)
        ordered = sorted(metrics.items(), key=lambda each: each[0] in ("cost", "failed"))
        for key, value in ordered:
            if isfinite(value):
                self._client.log_metric(run_id, key, float(value), timestamp=now, step=step)

    def _nested_run(self, record: MeasurementRecord | FailureRecord, tags: dict[str, str]) -> str:
        common = {"mlflow.parentRunId": str(self.run_id), "mlflow.runName": f"#{record.id}"}
        tags = {**common, _ID: str(record.id), **tags}
        run = self._client.create_run(self._experiment_id, tags=tags)
        run_id: str = run.info.run_id
        names = _names(record.point)
        for name, value in record.point.items():
            self._client.log_param(run_id, names[name], str(value)[:_MAX_TEXT])
        return run_id

    def _log_measurement(self, record: MeasurementRecord, metrics: Mapping[str, float]) -> None:
        tags = {} if record.reference is None else {"truvar.reference": record.reference}
        run_id = self._nested_run(record, tags)
        self._log_metrics(run_id, metrics, record.id)
        self._client.set_terminated(run_id)

    def _log_failure(self, failure: FailureRecord) -> None:
        run_id = self._nested_run(failure, {"truvar.reason": failure.reason or "not given"})
        self._log_metrics(run_id, {"cost": failure.cost}, failure.id)
        self._client.set_terminated(run_id, status="FAILED")


def _values(record: MeasurementRecord) -> dict[str, float]:
    """Return the measured values by name; a single one is called "value"."""
    return {"value": record.value} if record.values is None else dict(record.values)


def _names(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return distinct names that MLflow takes, by the names of columns or quantities.

    It takes letters, digits, spaces and `_ - . /`, as long as they could be the path of a file.
    """
    found: dict[str, str] = {}
    for name in names:
        allowed = _NOT_ALLOWED.sub("_", name)[:_MAX_NAME]
        if posixpath.normpath(allowed) != allowed or allowed[:1] in (".", "/"):
            allowed = allowed.replace(".", "_").replace("/", "_")
        number = 1
        distinct = allowed
        while distinct in taken or distinct in found.values():
            number += 1
            distinct = f"{allowed}_{number}"
        found[name] = distinct
    return found


def _settings(study: BaseStudy) -> dict[str, str]:
    """Return what the study asks, as parameters of the run."""
    return {
        "goal": repr(study.goal),
        "columns": ", ".join(study.domain.columns),
        "points": str(len(study.domain)),
        "policy": repr(study.policy),
    }
