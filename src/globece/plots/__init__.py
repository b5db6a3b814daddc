"""Figures: Display objects in scikit-learn's manner.

``from_explanation`` takes what is to be shown out of an explanation's views, ``from_audit`` out of an audit; ``plot``
draws it, as often as wanted, without computing anything again, and keeps ``ax_`` and ``figure_``.

Colours are Okabe and Ito's, which colour-blind readers tell apart; direction i has the same colour everywhere. Names
and categories are the user's own text, so none of it is read as mathematics.

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
