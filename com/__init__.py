"""com: chain-of-memory programs, typed, compiled, replayable."""
