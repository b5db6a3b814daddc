"""Figures: Display objects as in scikit-learn.

``from_explanation`` takes the data from an explanation's views, ``from_audit`` from an audit; ``plot`` draws it without
computing anything again, and stores ``ax_`` and ``figure_``.

Colours are Okabe and Ito's, which colour-blind readers can distinguish; direction i has the same colour everywhere.
Names and categories are the user's text, and are never interpreted as mathematics.

>>> from globece import plots
>>> plots.__all__[:4]
['CounterfactualsDisplay', 'ExchangeDisplay', 'GroupCostsDisplay', 'GroupProfilesDisplay']
"""

from globece.plots.charts import MeanTranslationDisplay, MinimumCostsDisplay, ProfileDisplay
from globece.plots.groups import (
    ExchangeDisplay,
    GroupCostsDisplay,
    GroupProfilesDisplay,
    GroupTranslationsDisplay,
)
from globece.plots.tables import CounterfactualsDisplay, RulesChartDisplay

__all__ = [
    "CounterfactualsDisplay",
    "ExchangeDisplay",
    "GroupCostsDisplay",
    "GroupProfilesDisplay",
    "GroupTranslationsDisplay",
    "MeanTranslationDisplay",
    "MinimumCostsDisplay",
    "ProfileDisplay",
    "RulesChartDisplay",
]
