"""The user's functions: how they are declared and called, and how a job ends."""
