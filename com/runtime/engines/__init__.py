"""One file an engine: how a connection is made safe, and how its values travel."""
