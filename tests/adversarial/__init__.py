"""An adversary that stays: random tables, models and questions, and an oracle that knows nothing of how we answer.

``make attack`` runs it for half an hour; a few of its problems run with every test. Each problem comes from one seed,
and ``python -m tests.adversarial SEED`` shows it in full.
"""

import os

# Each worker has one core: libraries that start threads of their own would only wait for one another. This must come
# before any of them is imported.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(name, "1")
