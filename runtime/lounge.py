"""`CoffeeLounge`: every statistic of a training by iteration, in memory and, if wanted, in a file."""

import csv
from pathlib import Path
from typing import Any

from layerc.runtime.weights import need
from layerc.runtime.whole_files import written_whole

_HEADER = ["iter", "name", "value"]


class CoffeeLounge:
    """`.statistics[name]` is {iteration: value}.

    save_into: a .csv file (iter,name,value, in full precision) or .h5 (groups name/iter, name/value),
    brought up to
    date every `every_n_iter` iterations (.h5: at the end) and complete after the solver's `finalize`.
    file_exists: "merge" keeps
    its rows, and a new row of the same iteration and name replaces; "overwrite"; "panic": FileExistsError.
    """

    def __init__(self, save_into: Any = None, every_n_iter: int = 1, file_exists: str = "merge") -> None:
        self.path = None if save_into is None else Path(save_into)
        if self.path is not None and self.path.suffix not in (".csv", ".h5", ".hdf5"):
            raise ValueError(f"CoffeeLounge: save_into={save_into!r} must end in .csv or .h5")
        if not (isinstance(every_n_iter, int) and every_n_iter > 0):
            raise ValueError(f"CoffeeLounge: every_n_iter={every_n_iter!r} must be a positive integer")
        if file_exists not in ("merge", "overwrite", "panic"):
            raise ValueError(f'CoffeeLounge: file_exists={file_exists!r} must be "merge", "overwrite" or "panic"')
        self.every_n_iter, self.file_exists = every_n_iter, file_exists
        self.statistics: dict[str, dict[int, float]] = {}
        self.iter = 0
        self._unsaved: list[tuple[int, str, float]] = []
        self._is_open = False

    def update_statistics(self, name: str, value: float, iter: int | None = None) -> None:
        """Store a value for an iteration, default the present one."""
        at = self.iter if iter is None else int(iter)
        self.statistics.setdefault(name, {})[at] = float(value)
        self._unsaved.append((at, name, float(value)))

    def open(self, iter: int) -> None:
        """A training begins at this iteration."""
        self.iter = iter
        if self.path is None or self._is_open:
            return
        if self.path.exists():
            if self.file_exists == "panic":
                raise FileExistsError(f"the lounge's file {self.path} exists")
            if self.file_exists == "merge":
                for at, name, value in _read(self.path):
                    self.statistics.setdefault(name, {}).setdefault(at, value)
        self._write_all()
        self._is_open = True

    def tick(self) -> None:
        """An iteration is over: append what is new, where it is time."""
        if self._is_open and self.iter % self.every_n_iter == 0 and self.path and self.path.suffix == ".csv":
            with open(self.path, "a", newline="") as file:
                csv.writer(file).writerows((at, name, repr(value)) for at, name, value in self._unsaved)
            self._unsaved = []

    def close(self) -> None:
        """The training is over: write the file whole, each iteration and name once."""
        if self._is_open:
            self._write_all()

    def _write_all(self) -> None:
        assert self.path is not None
        with written_whole(self.path) as scratch:
            if self.path.suffix == ".csv":
                rows = sorted((at, name, v) for name, values in self.statistics.items() for at, v in values.items())
                with open(scratch, "w", newline="") as file:
                    csv.writer(file).writerows([_HEADER, *((at, name, repr(value)) for at, name, value in rows)])
            else:
                with need("h5py", "h5py", "all").File(scratch, "w") as file:
                    for name, values in self.statistics.items():
                        file[f"{name}/iter"] = sorted(values)
                        file[f"{name}/value"] = [values[at] for at in sorted(values)]
        self._unsaved = []


def _read(path: Path) -> list[tuple[int, str, float]]:
    """The rows of a file; of one iteration and name the last one counts. ValueError for a file of another kind."""
    try:
        return _rows(path)
    except (ValueError, KeyError, TypeError, AttributeError, csv.Error, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise ValueError(f"{path} is no lounge's file: {error}") from None


def _rows(path: Path) -> list[tuple[int, str, float]]:
    if path.suffix == ".csv":
        with open(path, newline="") as file:
            rows = list(csv.reader(file))
        if rows and rows[0] != _HEADER:
            raise ValueError(f"its header is {','.join(rows[0])}")
        last = {(int(at), name): float(value) for at, name, value in rows[1:]}
        return [(at, name, value) for (at, name), value in last.items()]
    found = []
    with need("h5py", "h5py", "all").File(path, "r") as file:
        for name in file:
            pairs = zip(file[f"{name}/iter"][()], file[f"{name}/value"][()])
            found += [(int(at), name, float(value)) for at, value in pairs]
    return found
