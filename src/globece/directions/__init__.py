"""Who proposes directions: small generators behind one protocol."""

from globece.case.affected import Affected
from globece.directions.climbing import GreedyChains
from globece.directions.closed_form import ClosedForm
from globece.directions.evolution import Evolution
from globece.directions.fixed import FixedDirections
from globece.directions.gradient import GradientDescent
from globece.directions.importance import ImportanceSampling
from globece.directions.itemsets import ItemsetSampling
from globece.directions.local import FromLocal, LocalMethod, nearest_favourable
from globece.directions.means import MeanDifference
from globece.directions.mixed import Mixed
from globece.directions.protocol import DirectionGenerator
from globece.directions.sampling import UniformSampling

__all__ = [
    "Affected",
    "ClosedForm",
    "DirectionGenerator",
    "Evolution",
    "FixedDirections",
    "FromLocal",
    "GradientDescent",
    "GreedyChains",
    "ImportanceSampling",
    "ItemsetSampling",
    "LocalMethod",
    "MeanDifference",
    "Mixed",
    "UniformSampling",
    "nearest_favourable",
]
