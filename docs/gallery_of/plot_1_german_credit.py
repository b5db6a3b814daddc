"""
A credit model, explained by three directions
=============================================

Who was turned down, what would they have to change, and how far must each go?
"""

# %%
# The model is a pipeline over the raw columns of German Credit, in UCI's codes.
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import globece as gce
from globece.datasets import load_german_credit
from globece.plots import MeanTranslationDisplay, MinimumCostsDisplay, ProfileDisplay, RulesChartDisplay

german = load_german_credit()
X, y = german.frame, german.outcome
words = make_column_selector(dtype_exclude="number")
encode = make_column_transformer((OneHotEncoder(), words), remainder=StandardScaler())
model = make_pipeline(encode, LogisticRegression(max_iter=2000)).fit(X, y)

# %%
# People cannot change who they are, nor what they did before.
held = ["Sex", "Age", "Foreign-Worker", "Existing-Account-Status", "Credit-History", "Purpose"]
space = gce.FeatureSpace.from_frame(X, immutable=[name for name in held if name in X.columns])
ex = gce.explain(model, X, favourable=1, space=space, n_directions=3, rng=0)
print(ex.summary())

# %%
# The profile: coverage against a limit on cost.
ProfileDisplay.from_explanation(ex).plot()

# %%
# What each of them pays, and under which direction.
MinimumCostsDisplay.from_explanation(ex).plot()

# %%
# What changes on average.
MeanTranslationDisplay.from_explanation(ex).plot()

# %%
# The first direction, as rules that add up.
RulesChartDisplay.from_explanation(ex, direction=0).plot()
