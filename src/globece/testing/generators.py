"""The contract of a generator: subclass :class:`GeneratorContract`, define one fixture, and get the tests.

::

    class TestMyGenerator(GeneratorContract):
        @pytest.fixture
        def case(self):
            return GeneratorCase(MyGenerator(), problem)

Each failure names the generator and describes what it proposed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from globece import rays
from globece.case.affected import Affected
from globece.directions.protocol import DirectionGenerator, proposed
from globece.errors import check_count, check_instance, check_seed, wrong
from globece.space import FloatArray


@dataclass(frozen=True)
class GeneratorCase:
    """A generator, a problem to try it on, and how many directions to ask for.

    Attributes
    ----------
    generator
        Anything that implements :class:`globece.directions.DirectionGenerator`.
    problem
        The problem; the more constraints its space has, the more is tested.
    n
        Directions to ask for.
    """

    generator: DirectionGenerator
    problem: Affected
    n: int = 64

    def __post_init__(self) -> None:
        if isinstance(self.generator, type) or not callable(getattr(self.generator, "propose", None)):
            raise wrong("generator", "an object with a propose method", self.generator)
        check_instance("problem", self.problem, Affected)
        check_count("n", self.n)

    @property
    def name(self) -> str:
        """The generator's class."""
        return type(self.generator).__name__

    def propose(self, seed: int = 0, *, n: int | None = None, problem: Affected | None = None) -> FloatArray:
        """Directions as the generator returns them, without validation."""
        rng = np.random.default_rng(check_seed("seed", seed))
        posed = self.problem if problem is None else check_instance("problem", problem, Affected)
        return self.generator.propose(posed, self.n if n is None else check_count("n", n), rng)


class GeneratorContract:
    """Tests for every generator. Needs a fixture ``case`` that returns a :class:`GeneratorCase`."""

    def test_proposals_are_a_matrix_of_at_most_n_rows(self, case: GeneratorCase) -> None:
        for n in (case.n, 3, 1):
            found: Any = case.propose(n=n)
            assert isinstance(found, np.ndarray), f"{case.name} proposed a {type(found).__name__}, not an array"
            assert found.dtype == np.float64, f"{case.name} proposed numbers of type {found.dtype}, not float64"
            width = case.problem.space.width
            assert found.ndim == 2, f"{case.name} proposed an array of shape {found.shape}; one row per direction"
            assert found.shape[1] == width, f"{case.name} proposed {found.shape[1]} columns; the space has {width}"
            assert 0 < len(found) <= n, f"{case.name} proposed {len(found)} directions where {n} were asked for"

    def test_proposals_are_finite_move_somebody_and_break_no_constraint(self, case: GeneratorCase) -> None:
        found = case.propose()
        # raises with the generator's name, the direction's number, and what is wrong with it
        again = type(case.name, (), {"propose": lambda self, problem, n, rng: found})()
        proposed(again, case.problem, len(found), np.random.default_rng(0))
        assert (case.problem.cost.nominal(found) > 0).all(), f"{case.name} proposed a direction that costs nothing"

    def test_nobody_is_moved_where_they_may_not_go(self, case: GeneratorCase) -> None:
        space, Z = case.problem.space, case.problem.inputs
        for i, delta in enumerate(case.propose()):
            who = f"{case.name}, direction {i}:"
            after = rays.positions(space, Z, delta, 1.5)
            for f in space.features:
                before, now = Z[:, f.columns], after[:, f.columns]
                moved = np.asarray((np.nan_to_num(before) != np.nan_to_num(now)).any(axis=1))
                assert f.can_move or not moved.any(), f"{who} {f.name!r} may not move"
                if f.is_block:
                    gone = np.asarray(f.permitted)[space.codes(after, f)[moved]]
                    assert gone.all(), f"{who} {f.name!r} moves to a category that is not permitted"
                else:
                    inside = (now >= f.low) & (now <= f.high)
                    assert inside[moved].all(), f"{who} {f.name!r} moves to a value outside its range"
                if f.sense and not f.is_block:
                    steps = f.sense * np.nan_to_num(now - before)
                    assert (steps >= 0).all(), f"{who} {f.name!r} moves the wrong way"

    def test_the_seed_decides(self, case: GeneratorCase) -> None:
        state = np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
        first, again = case.propose(seed=5), case.propose(seed=5)
        assert first.tobytes() == again.tobytes(), f"{case.name} gives other directions for the same seed"
        after = np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
        assert after == state, f"{case.name} uses NumPy's global random state"

    def test_inputs_are_not_changed(self, case: GeneratorCase) -> None:
        problem = case.problem
        kept = (problem.inputs.copy(), None if problem.favourable_rows is None else problem.favourable_rows.copy())
        read_only = replace(
            problem,
            inputs=_read_only(kept[0]),
            favourable_rows=None if kept[1] is None else _read_only(kept[1]),
        )
        case.propose(problem=read_only)
        np.testing.assert_array_equal(problem.inputs, kept[0])
        if kept[1] is not None:
            np.testing.assert_array_equal(problem.favourable_rows, kept[1])

    def test_the_order_of_rows_changes_nothing(self, case: GeneratorCase) -> None:
        problem, order = case.problem, np.random.default_rng(1).permutation(len(case.problem.inputs))
        rows = problem.favourable_rows
        reordered = replace(
            problem, inputs=problem.inputs[order], favourable_rows=None if rows is None else rows[::-1].copy()
        )
        same = case.propose(problem=reordered)
        np.testing.assert_array_equal(same, case.propose(), f"{case.name} depends on the order of the rows")

    def test_it_describes_itself_the_same_way_each_time(self, case: GeneratorCase) -> None:
        described = repr(case.generator)  # part of an explanation's provenance: it must not contain an address
        assert " at 0x" not in described, f"{case.name} describes itself as {described}"


def _read_only(rows: FloatArray) -> FloatArray:
    view = rows.copy()
    view.setflags(write=False)
    return view
