"""Durable steps of a job: what is recorded of them, and how a run replays it."""
