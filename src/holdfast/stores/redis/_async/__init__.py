"""What threads and tasks do alike: written for tasks, and generated for threads."""
