"""What is being done now: a bar where tqdm and a terminal are there, else a line a step."""

import sys
import time

try:
    from tqdm import tqdm
except ImportError:
    tqdm = None


class Progress:
    def __init__(self, total: int):
        self.begin = self.last = time.perf_counter()
        self.bar = tqdm(total=total, leave=False, file=sys.stderr) if tqdm and sys.stderr.isatty() else None

    def step(self, text: str, minor: bool = False) -> None:
        """`minor` steps are drawn on a bar; as lines, one every few seconds is enough."""
        now = time.perf_counter()
        if self.bar is None and minor and now - self.last < 5:
            return
        self.last = now
        if self.bar is None:
            print(f"[{now - self.begin:6.1f} s] {text}", file=sys.stderr, flush=True)
        else:
            self.bar.set_description(text)
            self.bar.update()

    def say(self, text: str) -> None:
        if self.bar is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self.bar.write(text, file=sys.stderr)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
