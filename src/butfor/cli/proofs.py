"""The file beside the results that has their certificates, one on each line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butfor.certificate.record import read_certificates
from butfor.errors import InputError, StoreError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import TextIO

    from butfor.result.counterfactual import Counterfactual

__all__ = ["Proofs", "beside"]


def beside(results: Path) -> Path:
    """Where the certificates of a result file are: results.jsonl has results.proof.jsonl."""
    return results.with_name(f"{results.stem}.proof{results.suffix or '.jsonl'}")


class Proofs:
    """Appends certificates, each as soon as there is one; without a path it does nothing.

    Raises:
        StoreError: the file holds something else, or cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file: TextIO | None = None
        if path is None:
            return
        try:
            if path.exists() and path.stat().st_size:
                for _ in read_certificates(path):
                    pass
            self._file = path.open("a", encoding="utf-8")
        except InputError as problem:
            raise StoreError(f"{problem}; move the file away, it is not replaced") from problem
        except OSError as problem:
            raise StoreError(f"cannot write {path}: {problem.strerror}") from problem

    def append(self, result: Counterfactual) -> None:
        """Write the certificate of a result, if it has one."""
        if self._file is not None and result.certificate is not None:
            self._file.write(result.certificate.to_json() + "\n")
            self._file.flush()

    def __enter__(self) -> Proofs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
