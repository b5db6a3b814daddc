"""
How many directions, and how much margin?
=========================================

More directions cost people less; a margin makes recourse last, and costs more.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import globece as gce

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 6))
y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] > 0.3).astype(int)
model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(X, y)

# %%
# Directions are nested in quality: for one seed, more are never worse on the rows searched.
numbers = (1, 2, 3, 4)
found = [gce.explain(model, X, favourable=1, n_directions=n, effort="quick", rng=0) for n in numbers]
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.plot(numbers, [ex.score for ex in found], "o-", label="score")
axes.set(xlabel="directions", ylabel="score (mean minimum cost)", xticks=numbers)
axes.set_ylim(0, 1.1 * found[0].score)

# %%
# What the same directions cost when a counterfactual must keep a margin in probability.
told = found[-1].robustness()
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.plot(told.margin, told.score, "o-")
axes.set(xlabel="margin in probability", ylabel="score (mean minimum cost)", ylim=(0, 1.1 * told.score[-1]))
