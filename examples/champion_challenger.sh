#!/bin/sh
# A champion and a challenger: would those that the model turns down have it harder under the new one?
#
#   examples/champion_challenger.sh globece.toml champion.ubj challenger.ubj results
#
# Both are explained on the same rows with the same question. Exit code: 0 the challenger is not worse by more than 0.1 in
# score (the average cost, where people without recourse count as the full budget), 3 it is, 4 that could not be told.
set -eu
config=$1
champion=$2
challenger=$3
folder=${4:-results}

mkdir -p "$folder"
globece explain --config "$config" --model "$champion" --quiet --json "$folder/champion.json" > /dev/null
globece explain --config "$config" --model "$challenger" --quiet --json "$folder/challenger.json" > /dev/null
exec globece compare "$folder/champion.json" "$folder/challenger.json" --names champion,challenger \
    --worse-above 0.1 --html "$folder/comparison.html"
