"""Meters and traces, where OpenTelemetry is installed."""
