"""What threads and tasks do alike in stores across a wire: written for tasks, and `_sync` generated from it."""
