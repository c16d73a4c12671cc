"""The compiler: program text to plan, each phase a pure function."""
