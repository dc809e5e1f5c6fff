"""torch.compile for the peers: fresh for every shape, and given up after a while, so that one slow compiler does not
cost the figures that are there already."""
import contextlib
import signal
import sys

import torch


@contextlib.contextmanager
def at_most(seconds):
    """0: as long as it takes."""
    def give_up(signum, frame):
        raise TimeoutError(f"torch.compile was not ready after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def for_one_shape(model, **words):
    torch._dynamo.reset()
    return torch.compile(model, dynamic=False, **words)


def tell(what):
    print(f"peer: {what}", file=sys.stderr, flush=True)
