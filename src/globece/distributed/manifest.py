"""The folder of a run: its results by part, and the record of which parts are finished.

A part is finished when its record exists. The record is written after the results, each under a name of its own first
and then renamed, so a worker that dies leaves no part half finished, and two that do the same part leave one. A run
that is started again in the same folder keeps what is finished, if it is the same run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from globece.distributed.summary import Summary
from globece.errors import GlobeCEError, InvalidParameterError

RUN = "run.json"
SEARCHED = "searched"
FOLDER = "rows"


class ResultsError(GlobeCEError, OSError):
    """Results cannot be written."""


@dataclass(frozen=True)
class Folder:
    """The folder of a run.

    Attributes
    ----------
    path
        Where it is; every worker must be able to write there.
    key
        What the run is of: a digest of the rows, the directions, the model and how the rows are divided.
    """

    path: Path
    key: str

    @classmethod
    def opened(cls, path: Any, what: Mapping[str, Any]) -> Folder:
        """The folder for a run of this kind, new or begun earlier.

        Parameters
        ----------
        path
            Where.
        what
            What the run is of, by name.
        """
        folder = Path(path)
        described = {name: digest(value) for name, value in what.items()}
        key = digest(described)
        run = folder / RUN
        try:
            (folder / FOLDER).mkdir(parents=True, exist_ok=True)
            if run.exists():
                known = json.loads(run.read_text(encoding="utf-8"))["of"]
                differing = [name for name in described if known.get(name) != described[name]]
                if differing:
                    raise InvalidParameterError(
                        f"{folder} holds the results of another run: {', '.join(differing)} differ(s); "
                        "name another folder, or remove this one"
                    )
            else:
                replace_with(run, json.dumps({"key": key, "of": described}, indent=1).encode())
        except OSError as error:
            raise ResultsError(f"results cannot be written to {folder}: {error}") from error
        return cls(folder, key)

    @property
    def is_searched(self) -> bool:
        """Whether this run has found that it must search with the user's model alone."""
        return (self.path / SEARCHED).exists()

    def searched(self) -> Folder:
        """The same folder for results that are searched; those of the compiled model no longer count."""
        replace_with(self.path / SEARCHED, b"")
        return replace(self, key=digest([self.key, SEARCHED]))

    def rows(self, index: int) -> Path:
        """The results of a part."""
        return self.path / FOLDER / f"part-{index:06d}.parquet"

    def record(self, index: int) -> Path:
        """The record of a finished part."""
        return self.path / FOLDER / f"_part-{index:06d}.json"  # Parquet readers skip names that begin like this

    def finished(self, index: int) -> Summary | None:
        """The summary of a part, if it is finished."""
        try:
            found = json.loads(self.record(index).read_text(encoding="utf-8"))
            same = found["key"] == self.key and found["bytes"] == self.rows(index).stat().st_size
        except (OSError, ValueError, KeyError):
            return None
        return Summary.from_dict(found["summary"]) if same else None

    @contextlib.contextmanager
    def writing(self, index: int, schema: pa.Schema) -> Iterator[PartWriter]:
        """Write the results of a part; it is finished when the block ends, and not if it raises."""
        path = self.rows(index)
        temporary = _beside(path)
        try:
            with pq.ParquetWriter(temporary, schema, compression="zstd", use_dictionary=["group"]) as file:
                writer = PartWriter(file)
                yield writer
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
                found = hashlib.file_digest(written, "sha256").hexdigest()
                size = written.tell()
            temporary.replace(path)
            assert writer.summary is not None
            record = {"key": self.key, "part": index, "rows": writer.summary.rows, "bytes": size, "sha256": found}
            replace_with(self.record(index), json.dumps({**record, "summary": writer.summary.to_dict()}).encode())
        except OSError as error:
            if isinstance(error, GlobeCEError):
                raise
            raise ResultsError(
                f"results of part {index} cannot be written to {path.parent}: {error}; finished parts are kept: "
                "start the same run again when there is room"
            ) from error
        finally:
            temporary.unlink(missing_ok=True)


class PartWriter:
    """Writes batches of results of one part, and takes its summary at the end."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.summary: Summary | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""
        self.file.write_batch(batch)


def replace_with(path: Path, data: bytes) -> None:
    """Write a file in one piece, or not at all."""
    temporary = _beside(path)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}")


def digest(value: Any) -> str:
    """A digest of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
