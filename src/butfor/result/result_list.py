"""The results of several targets, in their order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from butfor.boundary.atomic import atomic_write
from butfor.errors import StoreError
from butfor.result.counterfactual import Counterfactual
from butfor.result.lines import reason_of, to_line
from butfor.result.table import counted, to_frame, to_html

if TYPE_CHECKING:
    import os

__all__ = ["ResultList"]


class ResultList(list[Counterfactual]):
    """A list of results that shows itself as a table in a notebook, and can become one or a file.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> results = butfor.explain(model, data, [600, 605, 606])
        >>> results
        <3 results: 3 optimal>
        >>> results[1].size
        2
        >>> results.to_frame().select("target", "status", "size", "after").rows()
        [(600, 'optimal', 1, 'base'), (605, 'optimal', 2, 'base'), (606, 'optimal', 1, 'base')]
        >>> results.save("results.jsonl")
    """

    def to_frame(self, kind: str = "polars") -> Any:
        """A table with one row for each result.

        Args:
            kind: "polars" or "pandas".

        Raises:
            InputError: ``kind`` is neither "polars" nor "pandas", or these are not installed.
        """
        return to_frame(self, kind)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the results to a new file (JSON Lines), which `butfor.load_results` reads again.

        Args:
            path: the file; it must not exist.

        Raises:
            StoreError: the file exists or cannot be written, or two results are of the same target.
        """
        path = Path(path)
        seen: set[int | tuple[int, int]] = set()
        for result in self:
            if result.target in seen:
                raise StoreError(f"{result.target_name} is in this list twice; a file has one result for each target")
            seen.add(result.target)
        if path.exists() or path.is_symlink():
            raise StoreError(f"{path} exists already; choose another file")
        try:
            with atomic_write(path) as file:
                file.writelines(map(to_line, self))
        except OSError as problem:
            raise StoreError(f"cannot write {path}: {reason_of(problem)}") from problem

    @overload
    def __getitem__(self, position: SupportsIndex) -> Counterfactual: ...
    @overload
    def __getitem__(self, position: slice) -> ResultList: ...
    def __getitem__(self, position: SupportsIndex | slice) -> Counterfactual | ResultList:
        if isinstance(position, slice):
            return ResultList(super().__getitem__(position))
        return super().__getitem__(position)

    def __repr__(self) -> str:
        return f"<{self._summary}>"

    def _repr_html_(self) -> str:
        return to_html(self, self._summary, len(self))

    @property
    def _summary(self) -> str:
        found = counted(self)
        return f"{len(self)} result{'s' * (len(self) != 1)}{': ' * bool(found)}{found}"
