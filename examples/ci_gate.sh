#!/bin/sh
# A gate for a build: stop where the model treats groups differently by more than a relevant gap.
#
#   examples/ci_gate.sh globece.toml artefacts
#
# CONFIG says the data, the model, the outcome and the groups (globece init writes one). The page and the result are kept
# as artefacts of the build, also where the gate fails. Exit code: 0 passed, 3 failed, 4 could not be decided; 1 and 2
# are errors. A build that takes only 0 for success stops in each of these cases, as it should.
set -eu
config=$1
artefacts=${2:-artefacts}

mkdir -p "$artefacts"
exec globece audit --config "$config" \
    --fail-on relevant --fail-on unknown --fail-rejection-above 0.2 \
    --json "$artefacts/audit.json" --html "$artefacts/audit.html" --quiet
