"""What threads and tasks do alike: written for tasks, and `_sync` generated from it."""
