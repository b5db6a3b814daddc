"""Figures: Display objects in scikit-learn's manner.

``from_explanation`` takes what is to be shown out of an explanation's views; ``plot`` draws it, as often as wanted,
without computing anything again, and keeps ``ax_`` and ``figure_``.

Colours are Okabe and Ito's, which colour-blind readers tell apart; direction i has the same colour everywhere. Names
and categories are the user's own text, so none of it is read as mathematics.

>>> from globece import plots
>>> plots.__all__
['CounterfactualsDisplay', 'MeanTranslationDisplay', 'MinimumCostsDisplay', 'ProfileDisplay', 'RulesChartDisplay']
"""

from globece.plots.charts import MeanTranslationDisplay, MinimumCostsDisplay, ProfileDisplay
from globece.plots.tables import CounterfactualsDisplay, RulesChartDisplay

__all__ = [
    "CounterfactualsDisplay",
    "MeanTranslationDisplay",
    "MinimumCostsDisplay",
    "ProfileDisplay",
    "RulesChartDisplay",
]
