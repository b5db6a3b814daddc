"""Parts on a Dask cluster: whatever the user's client is connected to.

The function with the model is one task of the graph that all others depend on. So a worker that joins later, or takes
the place of one that was killed, fetches it, and Dask computes a part again only if its worker died before it was
finished.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa

from globece.distributed.engines import dumps, is_of_one_part, raise_failed
from globece.distributed.sources import Source, of_frames, schema_of
from globece.errors import GlobeCEError, InvalidParameterError, ModelError, require

R = TypeVar("R")
AHEAD = 4  # parts per thread of the cluster that are handed out at a time


@dataclass(frozen=True)
class OnDask:
    """Parts on a cluster.

    Attributes
    ----------
    client
        The client.
    threads
        Threads that each call may use: a worker's share of its machine is Dask's to say, and one per task is its own
        default.
    frames
        The delayed partitions of a Dask DataFrame.
    """

    client: Any
    threads: int | None = field(default=1)

    frames: Sequence[Any] = ()

    @classmethod
    def of(cls, client: Any, frames: Sequence[Any] = ()) -> OnDask:
        """With this client, or the current one."""
        return cls(client_of(client), frames=frames)

    def run(self, work: Callable[[Any], R], source: Source) -> Iterator[R]:
        """Yield what the function returns for each part."""
        distributed = require("distributed", extra="distributed", caller="client=")
        client = self.client
        held = client.submit(pickle.loads, dumps(work), pure=False, key=f"globece-work-{uuid4().hex}")
        distributed.wait(held)
        client.replicate([held])  # or parts would be handed to the one worker that has it
        waiting = list(source.parts)[::-1]
        most = max(2, AHEAD * sum(client.nthreads().values()))
        following = distributed.as_completed(loop=client.loop)
        indices: dict[str, int] = {}

        def hand_out() -> None:
            while waiting and len(indices) < most:
                part = waiting.pop()
                future = self._submitted(held, part)
                indices[future.key] = part.index
                following.add(future)

        failed: list[tuple[int, Exception]] = []
        hand_out()
        try:
            for future in following:
                index = indices.pop(future.key)
                try:
                    found = future.result()
                except GlobeCEError as error:
                    if not is_of_one_part(error):
                        raise
                    failed.append((index, error))
                except (distributed.KilledWorker, CancelledError) as error:
                    failed.append((index, ModelError(f"the workers that worked on it were killed: {error}")))
                else:
                    yield found
                future.release()
                hand_out()
        finally:
            client.cancel(list(following.futures))
            held.release()
        raise_failed(failed, len(source.parts))

    def _submitted(self, held: Any, part: Any) -> Any:
        if not self.frames:
            return self.client.submit(_call, held, part, pure=False)
        dask = require("dask", extra="distributed", caller="a Dask DataFrame")
        made = dask.delayed(_call_with, pure=False)(held, part, self.frames[part.index])
        return self.client.compute(made)


def client_of(client: Any) -> Any:
    """The client given, or the current one."""
    distributed = require("distributed", extra="distributed", caller="client=")
    if client is None:
        try:
            return distributed.get_client()
        except ValueError as error:
            raise InvalidParameterError(
                "a Dask DataFrame needs a client: make one first, as with dask.distributed.Client()"
            ) from error
    if not isinstance(client, distributed.Client):
        raise InvalidParameterError(f"client must be a dask.distributed.Client; got {type(client).__name__}")
    return client


def opened(frame: Any, client: Any) -> Source:
    """The partitions of a Dask DataFrame, of which the rows are counted first."""
    dask = require("dask", extra="distributed", caller="a Dask DataFrame")
    if not (hasattr(frame, "to_delayed") and hasattr(frame, "columns")):
        raise InvalidParameterError(f"of Dask's collections a DataFrame is needed; got {type(frame).__name__}")
    engine = OnDask.of(client, tuple(frame.to_delayed()))
    ask = dask.delayed(schema_of)
    counted = engine.client.gather(engine.client.compute([ask(p) for p in engine.frames]))
    return of_frames(counted, "a Dask DataFrame", engine)


def _call(work: Callable[[Any], R], part: Any) -> R:
    return work(part)


def _call_with(work: Callable[[Any], R], part: Any, frame: Any) -> R:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return work(replace(part, tables=[table]))
