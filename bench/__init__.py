"""Benchmarks: `python -m bench [NAME ...]` runs them, keeps their results and writes BENCHMARKS.md from all of them."""
