"""What retries are made of: keys, attempt stores, settings."""
