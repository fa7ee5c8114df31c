"""Parameters: values and coordinates, and domains made of them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

import truvar as tv
from truvar.domain.domain import Domain
from truvar.domain.exclusions import Place
from truvar.exceptions import InvalidArgumentError, InvalidDomainError, PointNotInDomainError
from truvar.storage.serialization import deserialize, serialize

ALL = [
    tv.Range(-2.0, 3.5),
    tv.Range(0.0, 1.0, step=0.1),
    tv.Log(1e-6, 1e-1),
    tv.Log(3e-4, 7e5),
    tv.Integer(1, 12),
    tv.Integer(-7, 100, step=3),
    tv.Integer(1, 10_000, log=True),
    tv.Ordinal([16, 32, 64, 128]),
    tv.Ordinal(["low", "medium", "high"]),
    tv.Categorical(["lbfgs", "saga", "sag"]),
    tv.Categorical([2, 2.5, "auto", None]),
    tv.Boolean(),
    tv.Date("2026-05-01", "2026-09-30"),
    tv.Date("2026-05-01T06:00", "2026-05-02T18:30"),
    tv.Date("2026-10-24T06:00+02:00", "2026-10-26T18:30+01:00", timezone="Europe/Berlin"),
]


MICROSECONDS = st.datetimes(datetime.datetime(1790, 8, 1), datetime.datetime(2149, 6, 1))
ZONED = ALL[-1]
ZONES = st.sampled_from(["Europe/Berlin", "America/St_Johns", "UTC", "+05:45", "-03:00"])


@st.composite
def parameters_with_values(draw: st.DrawFn) -> tuple[Any, Any]:
    """Return a parameter of any type and one of its values."""
    kind = draw(
        st.sampled_from(
            ["range", "integer", "log integer", "choices", "boolean", "day", "time", "zone"]
        )
    )
    if kind == "range":
        value = draw(st.floats(-1e300, 1e300))
        return tv.Range(-1e300, 1e300), value
    if kind == "integer":
        return tv.Integer(-(2**52), 2**52), draw(st.integers(-(2**52), 2**52))
    if kind == "log integer":
        return tv.Integer(1, 10**12, log=True), draw(st.integers(1, 10**12))
    if kind == "choices":
        choices = draw(
            st.lists(st.none() | st.text() | st.floats(-1e9, 1e9), min_size=1, unique=True)
        )
        return draw(st.sampled_from([tv.Ordinal, tv.Categorical]))(choices), draw(
            st.sampled_from(choices)
        )
    if kind == "boolean":
        return tv.Boolean(), draw(st.booleans())
    if kind == "day":
        return tv.Date("0001-01-01", "9999-12-31"), draw(st.dates()).isoformat()
    moment = draw(MICROSECONDS)
    if kind == "time":
        return tv.Date("1790-08-01T00:00", "2149-06-01T00:00"), moment.isoformat()
    zoned = tv.Date("1790-08-01T00:00Z", "2149-06-01T00:00Z", timezone=draw(ZONES))
    return zoned, zoned._text(moment.replace(tzinfo=datetime.UTC))


@settings(max_examples=300, deadline=None)
@given(parameters_with_values())
def test_decoding_gives_back_the_encoded_value(given_pair):
    parameter, value = given_pair
    x = parameter.encode(value, "p")
    assert parameter.decode(x) == value
    assert parameter.decode_column(np.array([x])).tolist() == [value]
    assert (
        parameter.encode(parameter.parse(str(value), "p"), "p") == x
        or value is None
        or isinstance(value, str)
    )


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-6, 1e6))
def test_a_value_on_a_logarithmic_scale_comes_back_with_thirteen_digits(value):
    parameter = tv.Log(1e-6, 1e6)
    decoded = parameter.decode(parameter.encode(value, "p"))
    assert decoded == pytest.approx(value, rel=1e-12)
    assert parameter.decode(parameter.encode(decoded, "p")) == decoded


@settings(max_examples=100, deadline=None)
@given(st.integers(-(2**62), 2**62))
def test_nanoseconds_are_rounded_to_the_microsecond_however_they_are_written(nanoseconds):
    time = pd.Timestamp(nanoseconds, unit="ns")
    parameter = tv.Date("1677-09-22T00:00", "2262-04-11T00:00")
    x = parameter.encode(time, "p")
    assert parameter.encode(parameter.decode(x), "p") == x == parameter.encode(str(time), "p")
    assert parameter.encode(time.to_datetime64(), "p") == x
    fine = abs(x) < 2**16
    assert abs(pd.Timestamp(parameter.decode(x)) - time) <= pd.Timedelta(
        500 if fine else 500_500, "ns"
    )


@settings(max_examples=40, deadline=None)
@given(
    step=st.sampled_from(["1us", "7us", "300ms", "1s", "1h", "500ns"]),
    gap=st.sampled_from(["0s", "400D"]),
    zone=st.sampled_from([None, "Europe/Berlin", "UTC"]),
)
def test_every_row_of_a_table_of_times_is_found_by_its_point(step, gap, zone):
    first = pd.date_range("2026-10-25 00:00", periods=30, freq=step, tz=zone)
    times = first.append(first + pd.Timedelta(gap)) if gap != "0s" else first
    frame = pd.DataFrame({"t": times})
    if step == "500ns":
        with pytest.raises(InvalidDomainError, match="every row must be a different point"):
            tv.Domain.table(frame)
        return
    domain = tv.Domain.table(frame)
    rows = range(len(domain))
    assert [domain.locate(domain.point(row))[0] for row in rows] == list(rows)
    assert [domain.locate({"t": time})[0] for time in times] == list(rows)
    for row in (0, 17, len(domain) - 1):
        excluded = Place(point=domain.point(row)).on_domain(domain)
        assert np.flatnonzero(excluded).tolist() == [row]


def test_failing_and_telling_times_with_fractions_of_a_second_concerns_these_rows():
    frame = pd.DataFrame({"t": pd.date_range("2026-05-01", periods=20, freq="300ms")})
    study = tv.Study(tv.Domain.table(frame), tv.Maximize(), kernel=RBF(1e-5), mean=0.0, noise=1e-4)
    for row in (0, 1, 2, 3, 6):
        study.tell(study.domain.point(row), float(row))
    study.fail(study.domain.point(17))
    assert study.measurements["index"].tolist() == [0, 1, 2, 3, 6]
    assert np.flatnonzero(study.result().excluded).tolist() == [17]


def test_a_time_zone_is_kept_and_the_repeated_hour_of_autumn_has_rows_of_its_own(tmp_path):
    times = pd.date_range("2026-10-25 00:00", periods=9, freq="30min", tz="Europe/Berlin")
    study = tv.Study(
        tv.Domain.table(pd.DataFrame({"t": times})),
        tv.Maximize(),
        kernel=RBF(0.1),
        mean=0.0,
        noise=1e-4,
        store=f"sqlite:///{tmp_path}/zones.db",
        name="zones",
    )
    study.tell({"t": "2026-10-25T02:30:00+02:00"}, 1.0)
    study.fail({"t": "2026-10-25T02:30:00+01:00"})
    csv = tmp_path / "more.csv"
    csv.write_text("t,value\n2026-10-25T02:00:00+01:00,1.1\n")
    study.tell_frame(csv)
    again = tv.load(f"sqlite:///{tmp_path}/zones.db", "zones")
    for opened in (study, again, tv.Study.from_json(study.to_json())):
        assert opened.domain.parameters[0].timezone == "Europe/Berlin"
        assert opened.domain.point(5) == {"t": "2026-10-25T02:30:00+02:00"}
        assert opened.domain.point(7) == {"t": "2026-10-25T02:30:00+01:00"}
        assert np.flatnonzero(opened.result().excluded).tolist() == [7]
        told = opened.measurements["t"].tolist()
        assert told == ["2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00"]
    written = study.domain.to_frame().to_csv(index=False)
    csv.write_text(written)
    read = tv.Domain.table(csv)
    np.testing.assert_array_equal(read.points, study.domain.points)
    assert (
        read.parameters[0].timezone == "UTC"
    )  # of a file only the offsets are known, and these differ


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: ZONED.encode("2026-05-01T08:00", "t"),
            "must have its offset from UTC.*'2026-05-01T08:00:00.02:00'",
        ),
        (lambda: ZONED.encode(datetime.date(2026, 5, 1), "t"), "must have its offset from UTC"),
        (
            lambda: ALL[13].encode("2026-05-01T08:00+02:00", "t"),
            "must have no offset from UTC.*'2026-05-01T06:00:00'",
        ),
        (lambda: ZONED.encode(pd.NaT, "t"), "must be a date"),
        (lambda: ZONED.encode(np.datetime64("NaT"), "t"), "must be a date"),
        (
            lambda: tv.Date("2026-05-01T08:00+02:00", "2026-05-02T08:00"),
            "the high end of Date must have its offset",
        ),
        (
            lambda: tv.Date("2026-05-01", "2026-05-02", timezone="UTC"),
            "the low end of Date must have its offset",
        ),
        (
            lambda: tv.Date("2026-05-01T08:00Z", "2026-05-02T08:00Z", timezone="Mars"),
            "unknown time zone 'Mars'",
        ),
        (
            lambda: tv.Date("2026-05-01T08:00Z", "2026-05-02T08:00Z", timezone=3),
            "unknown time zone 3",
        ),
        (
            lambda: ZONED.encode("9999-12-31T23:00-12:00", "t"),
            "must be in the years 2 to 9998.*'9999-12-31T23:00:00",
        ),
        (
            lambda: tv.Date("0001-01-01T00:00+14:00", "2026-05-02T08:00Z"),
            "must be in the years 2 to 9998",
        ),
        (lambda: ALL[13].encode("9999-12-31T23:59:59.9999999", "t"), "must be a date"),
        (
            lambda: tv.Domain.table(pd.DataFrame({"t": ["2026-05-01T08:00Z", "2026-05-01T09:00"]})),
            "all times of column 't' must have an offset.*in row 1",
        ),
    ],
)
def test_a_time_without_its_offset_is_refused_where_the_others_have_one(make, words):
    with pytest.raises(tv.TruvarError, match=words):
        make()


def test_midnight_at_both_ends_of_a_table_does_not_hide_the_times_of_day():
    domain = tv.Domain.table(
        pd.DataFrame({"t": pd.date_range("2026-05-01", "2026-05-02", freq="6h")})
    )
    assert domain.to_frame()["t"].tolist()[:2] == ["2026-05-01T00:00:00", "2026-05-01T06:00:00"]
    days = tv.Domain.table(pd.DataFrame({"t": pd.date_range("2026-05-01", "2026-05-04")}))
    assert days.point(0) == {"t": "2026-05-01"}


def random_domain(rng: np.random.Generator, representers: int = 40) -> Domain:
    """Return a box of one to four random parameters."""
    chosen = rng.integers(len(ALL), size=rng.integers(1, 5))
    return tv.Domain.box(
        representers=representers, **{f"p{i}": ALL[k] for i, k in enumerate(chosen)}
    )


@pytest.mark.parametrize("parameter", ALL, ids=repr)
def test_values_survive_the_round_trip_through_coordinates(parameter):
    u = np.random.default_rng(0).random(200)
    coordinates = parameter.from_unit(u)
    low, high = parameter.bounds
    assert ((coordinates >= low - 1e-12) & (coordinates <= high + 1e-12)).all()
    for x in coordinates:
        value = parameter.decode(float(x))
        again = parameter.decode(parameter.encode(value, "p"))
        assert again == value
        assert type(again) is type(value)
        assert parameter.encode(value, "p") == pytest.approx(
            x, abs=1e-11
        )  # a time of day has whole microseconds
        assert parameter.encode(parameter.parse(str(value), "p"), "p") == parameter.encode(
            value, "p"
        )
    column = parameter.decode_column(coordinates).tolist()
    assert column == [parameter.decode(float(x)) for x in coordinates]


@pytest.mark.parametrize("parameter", [each for each in ALL if each.n_levels is not None], ids=repr)
def test_levels_are_what_snapping_leads_to(parameter):
    levels = parameter.levels
    assert len(levels) == parameter.n_levels == len(np.unique(levels))
    assert (levels == np.sort(levels)).all()
    assert (parameter.snap(levels) == levels).all()
    assert (parameter.level_of(levels) == np.arange(len(levels))).all()
    low, high = parameter.bounds
    assert (levels[0], levels[-1]) == (low, high)
    x = np.linspace(low - 1.0, high + 1.0, 501)
    assert np.isin(parameter.snap(x), levels).all()


def test_a_log_scale_spreads_values_evenly_by_ratio():
    parameter = tv.Log(1e-6, 1e-1)
    assert parameter.bounds == (-6.0, -1.0)
    assert parameter.encode(1e-3, "lr") == -3.0
    assert parameter.decode(-3.0) == 1e-3
    assert np.allclose(
        tv.Domain.grid(lr=tv.Log(1e-6, 1e-1, count=6)).column("lr"),
        [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1],
    )


def test_columns_of_plain_numbers_are_ranges():
    assert tv.Domain.box(x=(0, 1), y=(2, 3)).is_plain
    assert tv.Domain.grid(x=[0, 1, 2]).is_plain
    assert tv.Domain.table(pd.DataFrame({"x": [0.5, 1.5], "n": [1, 2]})).is_plain
    assert tv.Domain.box(x=tv.Range(0.0, 1.0)).is_plain
    assert tv.Domain.box(x=(0, 1), y=(2, 3)).parameters == (tv.Range(0.0, 1.0), tv.Range(2.0, 3.0))
    assert tv.Domain.grid(x=[1e20]).parameters[0].low == 1e20  # adding 1 does not change it
    assert not tv.Domain.box(x=(0, 1), y=tv.Integer(2, 3)).is_plain


def test_a_box_with_few_points_is_a_grid():
    domain = tv.Domain.box(depth=tv.Integer(1, 5), solver=["a", "b"], flag=tv.Boolean())
    assert not domain.continuous
    assert domain.shape == (5, 2, 2)
    assert domain.point(0) == {"depth": 1, "solver": "a", "flag": False}


def test_representers_of_a_mixed_box_are_points_of_it():
    domain = tv.Domain.box(
        x=(0, 1), depth=tv.Integer(1, 12), solver=["a", "b", "c"], representers=500
    )
    assert domain.continuous
    assert (domain.snap(domain.points) == domain.points).all()
    counts = np.unique(domain.points[:, 2], return_counts=True)[1]
    assert len(counts) == 3
    assert counts.min() > 140


def test_a_table_takes_text_booleans_integers_and_dates():
    frame = pd.DataFrame(
        {
            "solver": ["lbfgs", "saga", "saga"],
            "flag": [True, False, True],
            "n": [3, 4, 5],
            "day": pd.to_datetime(["2026-05-01", "2026-05-03", "2026-06-01"]),
            "C": [0.01, 1.0, 100.0],
        }
    )
    domain = tv.Domain.table(frame, log=["C"])
    assert domain.point(1) == {
        "solver": "saga",
        "flag": False,
        "n": 4,
        "day": "2026-05-03",
        "C": 1.0,
    }
    assert (
        domain.locate(
            {"solver": "saga", "flag": True, "n": 5, "day": datetime.date(2026, 6, 1), "C": 100}
        )[0]
        == 2
    )
    assert list(domain.column("n")) == [3, 4, 5]
    assert list(domain.to_frame()["solver"]) == ["lbfgs", "saga", "saga"]
    assert tv.Domain.table(frame, columns=["C", "n"], log="auto").parameters[0] == tv.Log(
        0.01, 100.0
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tv.Log(0, 1), "the low end of a log scale must be > 0, got 0"),
        (lambda: tv.Log(1, 0.1), "Log must have low < high"),
        (lambda: tv.Integer(1.5, 3), "must be a whole number, got 1.5"),
        (lambda: tv.Categorical("abc"), "needs a list of values, got 'abc'"),
        (lambda: tv.Categorical([]), "at least one value"),
        (lambda: tv.Categorical(["a", "a"]), "'a' is duplicated"),
        (lambda: tv.Categorical([object()]), "must be text, numbers, true or false"),
        (lambda: tv.Range(0, 1, step=2), "must fit between its ends"),
        (lambda: tv.Date("may", "june"), "must be a date such as"),
        (lambda: tv.Domain.grid(lr=tv.Log(1e-6, 1e-1)), "say how many"),
        (lambda: tv.Domain.box(flag=[True, True]), r"must be \[false, true\]"),
        (
            lambda: tv.Domain.table(pd.DataFrame({"x": ["1", "2", "x"]})),
            "must contain numbers, got 'x' in row 2",
        ),
        (
            lambda: tv.Domain.table(pd.DataFrame({"x": ["a", 1.0]})),
            "numbers or text, not both, got 1.0 in row 1",
        ),
        (lambda: tv.Domain.table(pd.DataFrame({"x": ["a", None]})), "got none in row 1"),
        (
            lambda: tv.Domain.table(pd.DataFrame({"x": [-1.0, 1.0]}), log=["x"]),
            "must be > 0, got -1.0 in row 0",
        ),
        (lambda: tv.Domain.table(pd.DataFrame({"x": [1.0, 2.0]}), log=["y"]), "unknown column 'y'"),
        (lambda: tv.Domain.table(pd.DataFrame({"x": [1.0, 2.0]}), log="x"), r"give \['x'\]"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(make, message):
    with pytest.raises((InvalidDomainError, InvalidArgumentError), match=message):
        make()


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (
            {"lr": 1e-3, "depth": 3.5, "solver": "saga"},
            "'depth' of the point must be a whole number, got 3.5",
        ),
        ({"lr": -1.0, "depth": 3, "solver": "saga"}, "'lr' of the point must be > 0, got -1"),
        ({"lr": 1e-3, "depth": 3, "solver": "sags"}, "unknown value 'sags'; did you mean 'saga'"),
        ({"lr": 1.0, "depth": 3, "solver": "saga"}, "is not in the domain"),
        ({"lr": 1e-3, "depth": 13, "solver": "saga"}, "is not in the domain"),
    ],
)
def test_a_value_that_a_parameter_does_not_have_is_refused(point, message):
    domain = tv.Domain.box(lr=tv.Log(1e-6, 1e-1), depth=tv.Integer(1, 12), solver=["lbfgs", "saga"])
    with pytest.raises((PointNotInDomainError, InvalidArgumentError), match=message):
        domain.locate(point)


def test_functions_of_the_points_see_the_values_of_the_user():
    domain = tv.Domain.box(lr=tv.Log(1e-6, 1e-1), solver=["lbfgs", "saga"], representers=16)
    seen = []

    def cost(points, last):
        seen.append((points, last))
        return np.array([1.0 if solver == "saga" else 2.0 for solver in points[:, 1]])

    study = tv.Study(
        domain, tv.Maximize(), cost=cost, noise=lambda points: np.asarray(points[:, 0], dtype=float)
    )
    suggestion = study.ask()
    assert suggestion.cost == (1.0 if suggestion.point["solver"] == "saga" else 2.0)
    assert suggestion.noise == pytest.approx(suggestion.point["lr"])
    study.tell(suggestion, 0.0)
    study.ask()
    assert list(seen[-1][1]) == list(suggestion.point.values())
    rates = tv.Study(domain, tv.Maximize(), cost=tv.Cost(base=1, magnitude={"lr": 10.0}))
    assert rates.candidates().cost.max() == pytest.approx(1 + 10 * domain.column("lr").max())
    with pytest.raises(InvalidArgumentError, match="has no numbers"):
        tv.Study(domain, tv.Maximize(), cost=tv.Cost(base=1, travel={"solver": 1.0}))


def test_dates_with_dots_have_the_day_first_and_dates_with_slashes_are_refused():
    frame = pd.DataFrame({"day": ["1.5.2026", "02.05.2026", "15.05.2026"], "z": [1, 2, 3]})
    domain = tv.Domain.table(frame)
    assert domain.parameters[0] == tv.Date("2026-05-01", "2026-05-15")
    assert domain.locate({"day": "2.5.2026", "z": 2})[0] == 1
    assert domain.point(2) == {"day": "2026-05-15", "z": 3}
    times = tv.Domain.table(pd.DataFrame({"t": ["1.5.2026 08:30", "1.5.2026 17:00"]}))
    assert times.point(1) == {"t": "2026-05-01T17:00:00"}
    with pytest.raises(
        tv.TruvarError, match="the day or the month may come first; write them as 2026-05-01"
    ):
        tv.Domain.table(pd.DataFrame({"day": ["05/01/2026", "05/02/2026"]}))


def test_the_page_draws_times_with_all_their_digits():
    from truvar.service import serializers

    times = pd.date_range("2026-05-01", periods=5, freq="300ms")
    domain = tv.Domain.table(pd.DataFrame({"t": times, "easting": 3_500_478.25 + np.arange(5) / 4}))
    drawn = serializers.drawn_coordinates(domain, domain.points)
    assert [domain.parameters[0].decode(x) for x in drawn[0]] == domain.to_frame()["t"].tolist()
    np.testing.assert_allclose(drawn[1], domain.points[:, 1], atol=1e-5)
    assert serializers.column_data(domain, 0)["date"] == "text"


def test_a_table_that_release_0_2_0_stored_without_its_time_zone_opens_in_utc():
    times = pd.date_range("2026-10-25 00:00", periods=9, freq="30min", tz="Europe/Berlin")
    domain = tv.Domain.table(pd.DataFrame({"t": times}))
    stored = serialize(domain)
    stored["parameters"] = [
        {"kind": "Date", "low": "2026-10-24T22:00:00", "high": "2026-10-25T02:00:00", "count": None}
    ]
    opened = deserialize(stored)
    np.testing.assert_array_equal(opened.points, domain.points)
    assert opened.point(1) == {"t": "2026-10-24T22:30:00"}
    assert opened.locate(opened.point(1))[0] == 1
    with pytest.raises(
        PointNotInDomainError, match="give '2026-10-24T22:30:00' if the times are in UTC"
    ):
        opened.locate(domain.point(1))
