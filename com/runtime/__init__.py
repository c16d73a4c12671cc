"""The runtime: plan and memory to outcome."""
