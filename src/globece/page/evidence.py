"""A report as evidence: a folder or a zip with the page, tables, configuration and fingerprints, and its reading back.

What is in it follows from the result and the configuration alone, so whoever has the data and the model computes the
same bytes again.
"""

from __future__ import annotations

import csv
import hashlib
import io as streams
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from globece.auditing import Audit
from globece.errors import FileFormatError, InvalidParameterError
from globece.explanation import Explanation
from globece.io import files
from globece.page.about import About
from globece.page.html import document
from globece.page.pages import page_of

MANIFEST, CONFIG, PAGE = "manifest.json", "config.json", "page.html"
FORMAT, VERSION = "globece.report", 1
LARGEST = 2**30  # bytes of a report, unpacked
STAMP = (1980, 1, 1, 0, 0, 0)  # of every file in a zip: the same report is the same bytes
LEFT = (".DS_Store", "Thumbs.db", "desktop.ini")  # what file managers leave in a folder that they show
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# RuntimeError: an entry that is encrypted, or packed in a way that is not known
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, UnicodeDecodeError)
FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def sha256(content: bytes) -> str:
    """The fingerprint of some bytes."""
    return hashlib.sha256(content).hexdigest()


def sha256_of(path: Any) -> str:
    """The fingerprint of a file, read in parts."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def contents(result: Explanation | Audit, config: Mapping[str, Any], about: About) -> dict[str, bytes]:
    """Every file of a report by name, the manifest included."""
    ex = result.explanation if isinstance(result, Audit) else result
    found = {
        PAGE: document(page_of(result, about)).encode("utf-8"),
        CONFIG: plain_json(config),
        "directions.csv": _directions(ex),
        "rules.csv": _rules(ex),
        "profile.csv": _profile(ex),
    }
    if isinstance(result, Audit):
        found |= {"groups.csv": _groups(result), "decisions.csv": _decisions(result)}
    if about.include_rows:
        text = result.to_json(members=True) if isinstance(result, Audit) else result.to_json()
        found["result.json"] = text.encode("utf-8")
        found["people.csv"] = _people(ex)
    found[MANIFEST] = plain_json(
        {"format": FORMAT, "version": VERSION, "sha256": {name: sha256(found[name]) for name in sorted(found)}}
    )
    return found


def plain_json(data: Any) -> bytes:
    """Plain data as bytes that are always the same."""
    return (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")


# -- writing and reading ----------------------------------------------------------------------------------------------


def write(path: Any, found: Mapping[str, bytes]) -> None:
    """Write a report into a zip, or into a folder that is empty or not there yet."""
    target = Path(files.check_path("path", path))
    if target.suffix == ".zip":
        packed = streams.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(found):
                entry = zipfile.ZipInfo(name, STAMP)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, found[name])
        files.write_bytes(str(target), packed.getvalue())
        return
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidParameterError(
            f"{str(target)!r} exists and is not an empty folder; a report is never mixed into another"
        )
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(
        found, key=lambda name: name == MANIFEST
    ):  # the manifest last: without it a report is unfinished
        files.write_bytes(str(target / name), found[name])


def read(path: Any) -> dict[str, bytes]:
    """Read a report from its folder or zip: plain files beside each other, and no more than fits."""
    source = Path(files.check_path("path", path))
    if source.is_dir():
        listed = sorted(entry for entry in source.iterdir() if entry.name not in LEFT)
        if any(entry.is_symlink() or not entry.is_file() for entry in listed):
            raise FileFormatError(f"{source} holds something else than plain files")
        _check_size(source, (entry.stat().st_size for entry in listed))
        return {entry.name: entry.read_bytes() for entry in listed}
    files.check_file("cannot read the report", source)
    try:
        with zipfile.ZipFile(source) as archive:
            entries = archive.infolist()
            if any(os.path.basename(e.filename) != e.filename or e.filename in ("", "..") for e in entries):
                raise FileFormatError(f"{source} holds files in folders; a report has none")
            if len({e.filename for e in entries}) != len(entries):
                raise FileFormatError(f"{source} holds two files of one name")
            if any(e.compress_type not in PACKED for e in entries):
                raise FileFormatError(f"{source} is packed in a way that no report is")
            _check_size(source, (e.file_size for e in entries))
            return {e.filename: _unpacked(archive, e) for e in entries}
    except DAMAGED as error:
        raise FileFormatError(f"{source} is neither a folder nor a zip that can be read: {error}") from error


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """One file, and no more of it than its entry says: what unpacks to more is not unpacked first."""
    with archive.open(entry) as file:
        return file.read(entry.file_size + 1)  # one more, so that the end is seen and the checksum compared


def _check_size(source: Path, sizes: Iterable[int]) -> None:
    if sum(sizes) > LARGEST:
        raise FileFormatError(f"{source} unpacks to more than {LARGEST:,} bytes; that is no report")


def parsed(found: Mapping[str, bytes], name: str, source: Any) -> dict[str, Any]:
    """One of a report's JSON files."""
    if name not in found:
        raise FileFormatError(f"{source} is not a report: it lacks {name}")
    try:
        data = json.loads(found[name])
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{name} of {source} is not JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise FileFormatError(f"{name} of {source} does not say that its format is {FORMAT}")
    if data.get("version") != VERSION:
        raise FileFormatError(
            f"{name} of {source} has version {data.get('version')!r}, and this release reads version {VERSION}; "
            "verify it with the release that wrote it"
        )
    return data


def damaged(found: Mapping[str, bytes], source: Any) -> list[str]:
    """What about the files is not as the manifest says."""
    told = parsed(found, MANIFEST, source).get("sha256")
    if not isinstance(told, dict):
        raise FileFormatError(f"{MANIFEST} of {source} lists no fingerprints")
    problems = [f"{name} is missing" for name in told if name not in found]
    problems += [f"{name} is not in the manifest" for name in found if name not in told and name != MANIFEST]
    problems += [
        f"{name} was changed: its SHA-256 begins with {sha256(found[name])[:12]}, and not {str(told[name])[:12]}"
        for name in told
        if name in found and sha256(found[name]) != told[name]
    ]
    return problems


def differences(before: Mapping[str, bytes], now: Mapping[str, bytes]) -> list[str]:
    """Which files came out differently, and where first."""
    problems = []
    for name in sorted((set(before) | set(now)) - {MANIFEST}):
        if name not in now:
            problems.append(f"{name} does not come out again")
        elif name not in before:
            problems.append(f"{name} comes out now, and was not there")
        elif before[name] != now[name]:
            problems.append(f"{name} differs: {_first_difference(before[name], now[name])}")
    return problems


def _first_difference(a: bytes, b: bytes) -> str:
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    line = a[:at].count(b"\n") + 1

    def near(text: bytes) -> str:
        return ascii(text[max(at - 20, 0) : at + 30].decode("utf-8", "replace"))

    return f"first at byte {at:,} (line {line:,}), {near(a)} then and {near(b)} now"


# -- tables -----------------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """A CSV file in which no cell is a formula: text that begins like one gets an apostrophe."""
    out = streams.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(name) for name in head])
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    return out.getvalue().encode("utf-8")


def _cell(value: Any) -> Any:
    if isinstance(value, (float, np.floating)):
        return "unknown" if np.isnan(value) else "no recourse" if np.isinf(value) else repr(float(value))
    if isinstance(value, (int, np.integer)):
        return int(value)
    text = str(value)
    return f"'{text}" if text.lstrip().startswith(FORMULAS) else text


def _directions(ex: Explanation) -> bytes:
    return table(["direction", *ex.space.columns], ([i + 1, *delta] for i, delta in enumerate(ex.directions)))


def _rules(ex: Explanation) -> bytes:
    head = ["direction", "features", "rule", "moves", "new_coverage", "new_cost", "coverage", "cost"]
    rows = ([i + 1, *record.values()] for i in range(ex.n_directions) for record in ex.rules_chart(i).records())
    return table(head, rows)


def _profile(ex: Explanation) -> bytes:
    p = ex.profile()
    return table(["limit", "coverage", "average_cost"], zip(p.limit, p.coverage, p.average_cost, strict=True))


def _decisions(au: Audit) -> bytes:
    head = ["group", "other", "measure", "gap", "low", "high", "p_adjusted", "margin", "conclusion"]
    rows = []
    for c in au.comparisons:
        for measure, gap in c.gaps.items():
            said = (c.decision.margin, c.decision.conclusion) if measure == "score" else ("", "")
            rows.append([c.group, c.other, measure, gap.value, gap.low, gap.high, gap.p_adjusted, *said])
    return table(head, rows)


def _groups(au: Audit) -> bytes:
    names = ["n", "affected", "rejection_rate", "coverage", "average_cost", "score", "judged", "note"]
    return table(["group", *names], ([g, *(getattr(m, n) for n in names)] for g, m in au.by_group.items()))


def _people(ex: Explanation) -> bytes:
    best = ex.minimum_costs()
    rows = zip(ex.rows, best.direction + 1, best.scalar, best.cost, strict=True)
    return table(["row", "direction (0: none)", "scalar", "cost"], rows)
