"""One small table an engine: how it writes what com means, and what it cannot do."""
