"""
Is the way as long for everybody?
=================================

An audit of a model of COMPAS by race: gaps with intervals, and a verdict in words.
"""

# %%
import textwrap

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import globece as gce
from globece.datasets import load_compas
from globece.plots import ExchangeDisplay, GroupCostsDisplay, GroupProfilesDisplay

compas = load_compas()
X, y = compas.frame, compas.outcome
encode = make_column_transformer(
    (OneHotEncoder(), make_column_selector(dtype_exclude="number")), remainder=StandardScaler()
)
model = make_pipeline(encode, LogisticRegression(max_iter=2000)).fit(X, y)

# %%
# A third of the rows, so that this page is quick.
space = gce.FeatureSpace.from_frame(X, immutable=["Sex", "Race", "Age_Cat"])
au = gce.audit(model, X[::3], by="Race", favourable=1, space=space, training_rows="all", effort="quick", rng=0)
for paragraph in str(au.verdict).splitlines():
    print(textwrap.fill(paragraph, 100))

# %%
# What recourse costs the members of each group.
GroupCostsDisplay.from_audit(au).plot()

# %%
# How many have recourse within a limit on cost.
GroupProfilesDisplay.from_audit(au).plot()

# %%
# One group's directions, used by another.
ExchangeDisplay.from_audit(au).plot()
