"""com: chain-of-memory programs, typed, compiled, replayable."""

__version__ = "0.1.0"
