"""What earlier builds worked out, by what they worked it out from: an edit of one layer runs no pass over the others.

    answers = Answers()
    run = answers.kept(passes.run)    a function of a kernel, and of what else can be pickled
    run(kernel)                       read where a build of this layerc has asked the same

The least recently used go when there are too many. Whatever is wrong with the folder, the function is called.
"""

import contextlib
import hashlib
import os
import pickle
import secrets
import sys
import zlib
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from layerc.build import cache
from layerc.build.unchanged import own_files

Answer = TypeVar("Answer")
Asked = ParamSpec("Asked")
MOST = 64 * 2**20  # bytes of all


class Answers:
    """Those of one build; leave it by `forget`."""

    def __init__(self) -> None:
        self._folder = cache.folder("answers")
        self._made_by = repr([sys.version, own_files()]).encode()
        self._new = False

    def kept(self, function: Callable[Asked, Answer]) -> Callable[Asked, Answer]:
        """The function, which asks the folder first. It depends on nothing but its arguments."""

        def asked(*args: Asked.args, **named: Asked.kwargs) -> Answer:
            of = pickle.dumps([function.__module__, function.__qualname__, args, named])
            entry = hashlib.sha256(self._made_by + of).hexdigest()
            with contextlib.suppress(Exception):  # there is none, or it is damaged: unpickling may raise anything
                answer: Answer = self._take(entry)
                return answer
            data = pickle.dumps(function(*args, **named))
            self._keep(entry, data)
            # As the next build will have it: the bytes by which further questions are found tell which of its parts
            # are one object.
            answer = pickle.loads(data)
            return answer

        return asked

    def forget(self) -> None:
        """Remove what was not used for longest, as far as there is too much of all."""
        if self._new:
            with contextlib.suppress(OSError):
                cache.shrink(self._folder, MOST)

    def _take(self, entry: str) -> Any:
        path = self._folder / entry
        digest, content = (data := path.read_bytes())[:32], data[32:]
        if hashlib.sha256(content).digest() != digest:
            raise ValueError("damaged")
        with contextlib.suppress(OSError):  # the folder may be somebody else's
            os.utime(path)
        return pickle.loads(zlib.decompress(content))

    def _keep(self, entry: str, data: bytes) -> None:
        content = zlib.compress(data, 1)
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            fresh = self._folder / f".{entry}.{secrets.token_hex(4)}"
            fresh.write_bytes(hashlib.sha256(content).digest() + content)
            os.replace(fresh, self._folder / entry)
            self._new = True
