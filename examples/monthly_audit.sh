#!/bin/sh
# An audit every month: the same question about this month's rows, kept by date, and held against the month before.
#
#   examples/monthly_audit.sh globece.toml loans-2026-06.parquet audits 2026-06
#
# Exit code: 0 as before or first month, 3 a gap has grown by more than 0.2, 4 that could not be told, 1 and 2 errors.
set -eu
config=$1
data=$2
folder=$3
month=${4:-$(date +%Y-%m)}

mkdir -p "$folder"
before=$(find "$folder" -name 'audit-*.json' ! -name "audit-$month.json" | sort | tail -n 1)

# --members keeps each person's row and cost, which a comparison needs: guard the folder as you guard the data.
globece audit "$data" --config "$config" --members --quiet \
    --json "$folder/audit-$month.json" --html "$folder/audit-$month.html" > "$folder/audit-$month.txt"

if [ -z "$before" ]; then
    echo "The first month: there is nothing to compare with."
    exit 0
fi
exec globece compare "$before" "$folder/audit-$month.json" --worse-above 0.2 --html "$folder/change-$month.html"
