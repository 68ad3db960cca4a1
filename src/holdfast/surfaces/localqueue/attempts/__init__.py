"""The parts of retries: keys, attempt stores, settings."""
