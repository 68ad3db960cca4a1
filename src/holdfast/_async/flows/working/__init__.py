"""The worker's commands: claims and settles in one step, records effects, sends heartbeats, receives cancellations."""
